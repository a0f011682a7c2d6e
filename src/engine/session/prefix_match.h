// The inside of a PrefixMatch (hearth/engine.h).
#pragma once

#include "engine/engine_core.h"
#include "engine/session/found_prefix.h"
#include "hearth/engine.h"

namespace hearth {

struct PrefixMatch::Found {
  const EngineCore* engine;
  FoundPrefix prefix;
};

}  // namespace hearth
