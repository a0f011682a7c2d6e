// The model families. A family is a description: what its forward pass is, what
// each file format calls its tensors, and two readers for the settings that are
// its own. Each lives in a file of families/, is declared in families/all.h and
// listed in families.cc.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "formats/assemble/assemble.h"
#include "formats/gguf/gguf.h"
#include "formats/tensors/tensor_names.h"
#include "formats/tensors/tensor_set.h"
#include "hearth/result.h"
#include "model/config.h"

namespace hearth {

// What a family's finish_hf sees: config.json, whose shared members are in
// `config` already.
struct HfInput {
  const Json& json;
  const std::string& label;  // starts messages
  ModelConfig& config;
  WeightPlan& plan;
};

// The same for GGUF. Key("x") is "<architecture>.x".
struct GgufInput {
  const GgufFile& file;
  TensorSet& tensors;
  const std::string& prefix;  // "llama."
  ModelConfig& config;
  WeightPlan& plan;

  std::string Key(const char* name) const { return prefix + name; }
};

// Adds a key, whose name has no prefix, to a GGUF file that is written.
struct GgufKeyWriter {
  std::function<void(const char* name, std::int64_t value)> size;
  std::function<void(const char* name, double value)> number;
  std::function<void(const char* name, bool value)> flag;
  std::function<void(const char* name, std::vector<std::int32_t> values)> sizes;
};

// Members of config.json that other families call by other names.
struct HfKeys {
  const char* d_model = "hidden_size";
  const char* n_layers = "num_hidden_layers";
  // A list of one entry for each layer, which counts them where the number is
  // missing.
  const char* layer_list = "layer_types";
  const char* n_heads = "num_attention_heads";
  const char* d_mlp = "intermediate_size";
  const char* context = "max_position_embeddings";
  const char* norm_eps = "rms_norm_eps";
  const char* activation = "hidden_act";
};

struct Family {
  std::string_view architecture = {};       // ModelConfig's name
  std::string_view gguf_architecture = {};  // empty: GGUF calls it as gguf_form
  // ModelConfig's name of the family whose GGUF form it has there.
  std::string_view gguf_form = "llama";
  std::string_view hf_class = {};       // config.json: architectures[0]
  std::string_view hf_model_type = {};  // and model_type

  NameScheme gguf_names = kGgufNames;
  NameScheme hf_names = kHuggingFaceNames;
  HfKeys hf_keys = {};

  MlpKind mlp = MlpKind::kGatedSilu;
  // Rotary pairs of the GGUF form. (In Hugging Face's form all are half-split;
  // converters to GGUF permute the rows of q and k for interleaved families.)
  bool gguf_interleaved = false;
  // Hugging Face: what a missing tie_word_embeddings means, the size of a head
  // when config.json has none (0: width / heads), and whether a part of the
  // head may be rotated.
  bool hf_tied = false;
  int hf_head_dim = 0;
  bool hf_partial_rotary = false;
  // Hugging Face: rotary pairs are (2i, 2i + 1) there, too.
  bool hf_interleaved = false;
  // Hugging Face: attention_bias is of q, k and v alone.
  bool hf_bias_not_of_o = false;
  // Hugging Face: tensors whose names begin so are parts that text does not go
  // through.
  std::string_view hf_skipped_prefix = {};
  // Takes rope_parameters apart itself: it has one for each kind of layer.
  bool hf_rope_per_layer = false;
  // Its experts may be MXFP4 there (quantization_config).
  bool hf_mxfp4 = false;
  // GGUF keys that change the arithmetic and that finish_gguf reads; the shared
  // reader refuses the others.
  std::span<const std::string_view> gguf_keys = {};

  // GGUF: every such layer sees all, the others have a window; 0: all have it.
  int gguf_window_period = 0;
  // GGUF: which layers have a window is always written as a list.
  bool gguf_window_list = false;
  // GGUF: every such layer is not rotated; 0: all are.
  int gguf_no_rope_interval = 0;
  // GGUF: of models with windows, the layers without one are not rotated.
  bool gguf_no_rope_without_window = false;
  // GGUF: a layer with a window turns by the local frequencies, which are the
  // main ones without their scaling.
  bool gguf_windows_unscaled = false;

  // GGUF: gate and up are apart there, whatever the other file has.
  bool gguf_splits_gate_up = false;
  // GGUF: what ModelConfig multiplies by is in the weights already.
  bool gguf_folded_scales = false;

  // GGUF: how delta nets are laid out.
  bool gguf_tiled_delta_net = false;
  bool gguf_fused_delta_rates = false;

  // What is so in every file of the family; may be null.
  void (*describe)(ModelConfig& config, WeightPlan& plan) = nullptr;
  // They refuse settings that change the arithmetic and that hearth has no code
  // for.
  Result<void> (*finish_gguf)(const GgufInput& in) = nullptr;
  Result<void> (*finish_hf)(const HfInput& in) = nullptr;
  // Hugging Face: what the tensors say and config.json does not.
  void (*adapt_hf)(const TensorSet& tensors, WeightPlan& plan,
                   NameScheme& names) = nullptr;
  // Adds to config.json what finish_hf reads and no other family has.
  void (*write_hf)(const ModelConfig& config, Json& json) = nullptr;
  // The same for GGUF's keys, whose names have no prefix.
  void (*write_gguf)(const ModelConfig& config,
                     const GgufKeyWriter& key) = nullptr;
};

std::span<const Family* const> Families();

// nullptr when unknown.
const Family* FamilyOfGguf(std::string_view architecture);
const Family* FamilyOfHfClass(std::string_view hf_class);
const Family* FamilyOfHfModelType(std::string_view model_type);
// By ModelConfig::architecture.
const Family* FamilyNamed(std::string_view architecture);

}  // namespace hearth
