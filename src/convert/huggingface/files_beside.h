// What lies beside a Hugging Face model's weights and goes along when they are
// written anew.
#pragma once

#include <string>
#include <vector>

#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// Copies tokenizer, templates, generation settings, card and licence of the
// model's directory to another; `notes` gets a line for files that are not
// copied. kNotFound for a model without a tokenizer.
Result<void> CopyFilesBeside(const LoadedModel& model,
                             const std::string& directory,
                             std::vector<std::string>& notes);

}  // namespace hearth
