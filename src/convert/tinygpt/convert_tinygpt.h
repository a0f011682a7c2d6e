// A loaded model as a .tinygpt file.
#pragma once

#include <string>

#include "hearth/convert.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// A vocabulary that is not plain bytes goes into the directory
// "<path without .tinygpt>-tokenizer" beside the file. kUnsupported, naming the
// difference, for a model of another forward pass.
Result<void> WriteTinygpt(const LoadedModel& model, const std::string& path,
                          const WriteOptions& options);

}  // namespace hearth
