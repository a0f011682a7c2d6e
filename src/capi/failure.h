// How a call of the C interface fails: a code, a text for the calling thread,
// and never an exception.
#pragma once

#include <string>
#include <utility>

#include "hearth/hearth.h"
#include "hearth/result.h"

namespace hearth::capi {

hearth_code CodeOf(Code code);
// Keeps `message` for hearth_last_error; gives `code`.
hearth_code Fail(hearth_code code, std::string message);
hearth_code Fail(const Error& error);
// What stands behind an exception that was caught.
hearth_code FailByException();

// Runs f, which gives a hearth_code; nothing thrown in it goes further.
template <typename F>
hearth_code Guarded(const F& f) {
  try {
    return f();
  } catch (...) {
    return FailByException();
  }
}

}  // namespace hearth::capi
