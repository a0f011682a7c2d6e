// Model files loaded, whatever they are, and described.
#pragma once

#include <string>

#include "hearth/engine.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// Empty: the model inside the program.
Result<LoadedModel> LoadAny(const std::string& path);

// All but the tokenizer.
ModelInfo Describe(const LoadedModel& model);

}  // namespace hearth
