// A loaded model as a .tinygpt file.
#pragma once

#include <string>
#include <vector>

#include "hearth/convert.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// A vocabulary that is not plain bytes goes into the directory
// "<path without .tinygpt>-tokenizer" beside the file. kUnsupported, naming the
// difference, for a model of another forward pass. Adds to `notes` what a
// reader of the result should know.
Result<void> WriteTinygpt(const LoadedModel& model, const std::string& path,
                          const WriteOptions& options,
                          std::vector<std::string>& notes);

}  // namespace hearth
