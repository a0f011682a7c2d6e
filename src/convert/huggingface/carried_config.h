// Members of config.json that change no number that a model computes, and that
// transformers reads all the same.
#pragma once

#include <string>
#include <vector>

#include "base/json.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// Adds to `config`, which describes the model as it will be written: the number
// format of its matrices, the padding token, and from the config.json of a
// model that came from one, dropout and the like. What else stands there and is
// not carried is named in a line of `notes`.
Result<void> AddCarriedConfig(const LoadedModel& model, Json& config,
                              std::vector<std::string>& notes);

}  // namespace hearth
