// The engine, as the scheduler uses it.
#pragma once

#include <memory>

#include "serve/schedule/backend.h"

namespace hearth::serve {

// `engine` outlives it.
std::unique_ptr<Backend> MakeEngineBackend(Engine& engine);

}  // namespace hearth::serve
