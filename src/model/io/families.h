// The model families: what each one calls itself in each file format, and what
// it adds to the keys that all share. A new family is one row in families.cc
// and, where it differs, one small file with its two readers.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "base/json.h"
#include "hearth/result.h"
#include "model/config.h"
#include "model/io/assemble.h"
#include "model/io/gguf.h"
#include "model/io/tensor_set.h"

namespace hearth {

struct Family {
  std::string_view architecture;  // ModelConfig's and GGUF's name
  std::string_view hf_class;      // config.json: architectures[0]
  // Rotary pairs of the GGUF form. (In Hugging Face's form all are half-split;
  // converters to GGUF permute the rows of q and k for interleaved families.)
  bool gguf_interleaved;
  // Called after the shared keys were read. They refuse settings that change
  // the arithmetic and that hearth has no code for.
  Result<void> (*finish_gguf)(const GgufFile& file, const TensorSet& tensors,
                              ModelConfig& config, WeightPlan& plan);
  Result<void> (*finish_hf)(const Json& json, const std::string& label,
                            ModelConfig& config, WeightPlan& plan);
};

std::span<const Family> Families();

// nullptr when unknown.
const Family* FamilyOfGguf(std::string_view architecture);
const Family* FamilyOfHfClass(std::string_view hf_class);

}  // namespace hearth
