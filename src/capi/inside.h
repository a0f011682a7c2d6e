// A call to a session: its handle looked up, one thread inside.
#pragma once

#include "capi/handles.h"
#include "capi/objects.h"

namespace hearth::capi {

// Runs f(object), which gives a hearth_code.
template <typename F>
hearth_code Inside(hearth_session* session, const F& f) {
  return Guarded([&]() -> hearth_code {
    const auto object = Handles::All().Find<SessionObject>(session);
    if (object == nullptr) return HEARTH_BAD_HANDLE;
    if (!object->use.Enter()) {
      return Fail(HEARTH_IN_USE,
                  "the session is in use by another thread; one thread at a "
                  "time may call it");
    }
    struct Visit {
      OneThread& use;
      ~Visit() { use.Leave(); }
    } visit{object->use};
    return f(*object);
  });
}

}  // namespace hearth::capi
