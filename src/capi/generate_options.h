#pragma once

#include <string_view>

#include "capi/objects.h"
#include "hearth/result.h"

namespace hearth::capi {

// A member of GenerateOptions or SamplingOptions by its name, or the form of
// the answer. Errors as the makers of constraints have them, and
// kInvalidArgument. The object's mutex is held.
Result<void> SetGenerateOption(std::string_view name, std::string_view value,
                               GenerateOptionsObject& object)
    HEARTH_REQUIRES(object.mutex);

}  // namespace hearth::capi
