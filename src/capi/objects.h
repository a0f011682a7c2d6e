// What handles stand for.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/mutex.h"
#include "capi/one_thread.h"
#include "hearth/engine.h"
#include "hearth/hearth.h"

namespace hearth::capi {

struct EngineObject {
  using Handle = hearth_engine;
  static constexpr std::string_view kKind = "engine";
  std::unique_ptr<Engine> engine;
};

struct EngineOptionsObject {
  using Handle = hearth_engine_options;
  static constexpr std::string_view kKind = "engine options";
  Mutex mutex;
  EngineOptions options HEARTH_GUARDED_BY(mutex);
};

struct GenerateOptionsObject {
  using Handle = hearth_generate_options;
  static constexpr std::string_view kKind = "generate options";
  std::shared_ptr<EngineObject> engine;
  Mutex mutex;
  GenerateOptions options HEARTH_GUARDED_BY(mutex);
  bool own_breakers HEARTH_GUARDED_BY(mutex) = false;
};

struct SessionObject {
  using Handle = hearth_session;
  static constexpr std::string_view kKind = "session";
  std::shared_ptr<EngineObject> engine;  // kept, though its handle be freed
  std::unique_ptr<Session> session;
  OneThread use;
  // What the newest reports point to; touched only from inside `use`.
  SyncReport sync;
  std::string warnings;
  GenerateReport generated;
};

}  // namespace hearth::capi
