#pragma once

#include <string_view>

#include "hearth/options.h"
#include "hearth/result.h"

namespace hearth::capi {

// A member of EngineOptions by its name. kInvalidArgument.
Result<void> SetEngineOption(std::string_view name, std::string_view value,
                             EngineOptions& options);

}  // namespace hearth::capi
