// For the files of this room: the inside of an Engine.
#pragma once

#include "engine/session.h"
#include "hearth/engine.h"

namespace hearth {

// REQUIRES: `engine` came from Engine::Open.
EngineParts& PartsOf(Engine& engine);

}  // namespace hearth
