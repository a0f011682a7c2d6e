// How the weights of a Hugging Face directory are quantised, as its
// configuration says: docs/formats/huggingface.md.
#pragma once

#include <cstdint>
#include <string>

#include "base/json.h"
#include "formats/families.h"
#include "hearth/result.h"

namespace hearth {

enum class HfQuantMethod {
  kNone,
  kMxfp4,  // gpt_oss's experts: pairs of _blocks and _scales
  kFloat,  // FP8 and NVFP4, tensor by tensor
};

struct HfQuantization {
  HfQuantMethod method = HfQuantMethod::kNone;
  // FP8: rows and columns that share a scale; 0: one scale for a matrix or one
  // for each of its rows, as the scales' shape says.
  std::uint64_t block_rows = 0, block_columns = 0;
  // NVFP4: a matrix' second scale divides instead of multiplying.
  bool divides_by_global = false;
};

// Of config.json. kUnsupported for every scheme whose numbers hearth does not
// read, naming it and what to get instead; kCorrupt for members of wrong types.
// `label` starts messages.
Result<HfQuantization> ReadHfQuantization(const Json& config,
                                          const std::string& label,
                                          const Family& family);

// Of hf_quant_config.json, where older exports of NVIDIA's Model Optimizer have
// it alone. Errors as above.
Result<HfQuantization> ReadHfQuantFile(const Json& file,
                                       const std::string& label);

}  // namespace hearth
