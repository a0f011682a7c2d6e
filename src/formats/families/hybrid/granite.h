// Granite's four multipliers, in each file format.
#pragma once

#include "formats/families.h"

namespace hearth {

Result<void> GgufGraniteScales(const GgufInput& in);
Result<void> HfGraniteScales(const HfInput& in);
void WriteHfGraniteScales(const ModelConfig& config, Json& json);

}  // namespace hearth
