// A model from a Hugging Face directory: config.json and model.safetensors, or
// shards with model.safetensors.index.json. docs/formats/huggingface.md.
#pragma once

#include <string>

#include "base/json.h"
#include "formats/assemble/assemble.h"
#include "formats/families.h"
#include "formats/huggingface/hf_quantization.h"
#include "hearth/result.h"
#include "model/mtp.h"
#include "model/weights.h"

namespace hearth {

Result<LoadedModel> LoadHuggingFace(const std::string& directory);
// Its multi-token-prediction block; errors as LoadMtp.
Result<MtpBlock> LoadHuggingFaceMtp(const std::string& directory);

// What config.json says. `label` starts messages.
struct HuggingFaceConfig {
  const Family* family = nullptr;
  ModelConfig config;
  WeightPlan plan;
  HfQuantization quantization;
  // A part of a model that sees images or hears besides (text_config).
  bool text_part = false;
};
Result<HuggingFaceConfig> ReadHuggingFaceConfig(const Json& json,
                                                const std::string& label);

// The shard files of an index, sorted, and the shard of every tensor. kCorrupt
// for anything but plain file names.
struct ShardIndex {
  std::vector<std::string> files;
  std::vector<std::pair<std::string, std::string>> tensors;  // name, file
};
Result<ShardIndex> ParseShardIndex(std::string_view json,
                                   const std::string& label);

}  // namespace hearth
