// A loaded model: its configuration, its weights where they lie in the mapped
// files, and what identity needs to know of every tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "hearth/sampling_defaults.h"
#include "model/config.h"
#include "tensor/weight_matrix.h"

namespace hearth {

class GgufFile;

// One-dimensional tensors are small: widened to float at load.
struct NormWeights {
  std::vector<float> weight;  // [d_model]
  std::vector<float> bias;    // [d_model], or empty
};

struct Linear {
  WeightMatrix w;           // [n_out, n_in], in the mapped file
  std::vector<float> bias;  // [n_out], or empty

  bool empty() const { return w.data == nullptr; }
};

// One feed-forward network. Files that store gate and up as one matrix are read
// as they are: then gate_up stands for both.
struct MlpWeights {
  Linear gate;               // [width, d_model]; gated kinds only
  Linear up;                 // [width, d_model]
  Linear gate_up;            // [2 * width, d_model]: gate's rows, then up's
  bool interleaved = false;  // gate_up: gate and up alternate, row by row
  Linear down;               // [d_model, width]
};

// A causal convolution of every channel alone.
struct ConvWeights {
  std::vector<float> taps;  // [conv_taps][n_channels], the newest token last
};

// y = out(C * conv(B * X)), where [B | C | X] = in(x).
struct ShortConvWeights {
  Linear in;  // [3 * d_model, d_model]
  ConvWeights conv;
  Linear out;  // [d_model, d_model]
};

// See DeltaNetShape and model/cpu/delta_net.h. Files have the first projection
// whole or in two: then the matrices that are not there are empty.
struct DeltaNetWeights {
  Linear qkv;   // [n_channels, d_model]
  Linear gate;  // [n_value_heads * value_dim, d_model]
  // Of each key head: its query, key, values and gates.
  Linear qkv_gate;
  Linear rate, decay;  // [n_value_heads, d_model]
  // Of each key head: the rates of its value heads, then their decays.
  Linear rate_decay;
  ConvWeights conv;
  std::vector<float> decay_scale;  // [n_value_heads]: -exp(A_log), below 0
  std::vector<float> decay_log;    // A_log where the file has it, for writers
  std::vector<float> decay_bias;   // [n_value_heads]
  std::vector<float> norm;         // [value_dim], of each value head's result
  Linear out;                      // [d_model, n_value_heads * value_dim]
};

struct LayerWeights {
  NormWeights attention_norm;       // before; empty when there is none
  NormWeights post_attention_norm;  // after; empty when there is none
  // [n_heads * head_dim, d_model]; with ModelConfig::attention_gate twice as
  // many rows: of each head its queries, then its gates.
  Linear q;
  Linear k, v;  // [n_kv_heads * head_dim, d_model]
  Linear qkv;   // instead of the three where the file has them in one
  std::vector<float> q_norm, k_norm;  // as ModelConfig::qk_norm says
  std::vector<float> sinks;           // [n_heads], or empty
  Linear o;                           // [d_model, n_heads * head_dim]
  NormWeights mlp_norm, post_mlp_norm;
  MlpWeights mlp;                   // of dense models
  Linear router;                    // [n_experts, d_model]
  std::vector<MlpWeights> experts;  // [n_experts]
  MlpWeights shared_expert;
  Linear shared_expert_gate;    // [1, d_model]
  ShortConvWeights short_conv;  // of layers with Mixer::kShortConv
  DeltaNetWeights delta_net;    // of layers with Mixer::kDeltaNet
};

struct Weights {
  WeightMatrix token_embedding;           // [vocab_size, d_model], kOutIn
  std::vector<float> position_embedding;  // [context_length, d_model], or empty
  std::vector<LayerWeights> layers;       // [n_layers]
  NormWeights final_norm;
  Linear head;  // [vocab_size, d_model]; the embedding itself when tied
};

// Every tensor of the file(s), used or not, in file order.
struct TensorRecord {
  std::string name;
  std::string type;                  // the file's own name of the number format
  std::vector<std::uint64_t> shape;  // outermost first
  ByteSpan bytes;                    // in the mapped file
  ByteSpan scales = {};              // .tinygpt int4: the block scales
};

// Where the tokenizer of a model is to be found.
enum class TokenizerSource : std::uint8_t {
  kBytes,     // id = byte
  kGguf,      // tokenizer.ggml.* of `gguf`
  kDirectory  // tokenizer.json (and tokenizer_config.json) in `tokenizer_dir`
};

// Move-only; the spans inside point into `files` and `made`.
struct LoadedModel {
  std::string path;         // as the user gave it, for messages
  std::string file_format;  // "GGUF v3", "safetensors", ".tinygpt v2 fp16", ...
  ModelConfig config;
  Weights weights;
  std::vector<TensorRecord> tensors;
  std::vector<MappedFile> files;
  // Weights in another order than the file's: Hugging Face's MXFP4 alone.
  std::vector<std::unique_ptr<std::byte[]>> made;
  std::uint64_t n_parameters = 0;

  TokenizerSource tokenizer_source = TokenizerSource::kBytes;
  std::shared_ptr<const GgufFile> gguf;  // GGUF models only
  std::string tokenizer_dir;
  std::vector<std::int32_t> eos_ids;  // from the model's own configuration
  std::int32_t bos_id = -1;
  SamplingDefaults sampling;  // as its authors recommend
};

}  // namespace hearth
