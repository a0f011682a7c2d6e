// Any loaded model as the two files that a Hugging Face directory needs:
// config.json and model.safetensors, whatever the model came from. F32, F16 and
// BF16 matrices keep their format, block formats become F32, exactly; vectors
// are F32.
#pragma once

#include <string>

#include "base/json.h"
#include "formats/families.h"
#include "hearth/convert.h"
#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

// config.json and what reading it gives. It was read back and compared with the
// model, so that it says all that the forward pass depends on; kUnsupported,
// naming the setting, when the family's config.json cannot.
struct HfDescription {
  Json json;
  const Family* family = nullptr;
  WeightPlan plan;
};
Result<HfDescription> DescribeForHf(const LoadedModel& model);

// Writes the tensors that `description` promises. Memory: one tensor at a time.
Result<void> WriteHfTensors(const LoadedModel& model,
                            const HfDescription& description,
                            const std::string& path,
                            const WriteOptions& options = {});

}  // namespace hearth
