// For the files of this room: the inside of an Engine.
#pragma once

#include <memory>

#include "engine/session.h"
#include "hearth/engine.h"

namespace hearth {

// All that Engine::Open makes but the draft. `pool` null: one of its own.
Result<std::unique_ptr<EngineParts>> OpenParts(
    const EngineOptions& options, std::shared_ptr<ThreadPool> pool);

// REQUIRES: `engine` came from Engine::Open.
EngineParts& PartsOf(Engine& engine);

}  // namespace hearth
