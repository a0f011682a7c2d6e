// A loaded model: its configuration, its weights where they lie in the mapped
// files, and what identity needs to know of every tensor.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
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

// What an adapter adds to some of a linear layer's outputs:
// factor * up(down x).
struct LowRank {
  WeightMatrix down;  // [rank, n_in], plain and kOutIn, as `up`
  WeightMatrix up;    // [n, rank], of the outputs from first_row on
  float factor = 1;
  std::int64_t first_row = 0;
  int adapter = 0;  // of LoadedModel::adapters; they rise
};

struct Linear {
  WeightMatrix w;           // [n_out, n_in], in the mapped file
  std::vector<float> bias;  // [n_out], or empty
  // Of one adapter no two are of the same output.
  std::vector<LowRank> low_ranks = {};

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
  std::vector<float> bias;  // [n_channels], or empty
};

// y = out(C * conv(B * X)), where [B | C | X] = in(x).
struct ShortConvWeights {
  Linear in;  // [3 * d_model, d_model]
  ConvWeights conv;
  Linear out;  // [d_model, d_model]
};

// See DeltaNetShape and model/cpu/mixers/delta_net.h. Files have the first
// projection whole or in two: then the matrices that are not there are empty.
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

// See Mamba2Shape and model/cpu/mamba2.h.
struct Mamba2Weights {
  Linear in;  // [n_projected, d_model]
  ConvWeights conv;
  std::vector<float> decay_scale;  // [n_heads]: -exp(A_log), below 0
  std::vector<float> decay_log;    // A_log where the file has it, for writers
  std::vector<float> step_bias;    // [n_heads], of the time steps
  std::vector<float> skip;         // [n_heads], of the inputs themselves
  std::vector<float> norm;         // [width], or empty
  Linear out;                      // [d_model, width]
};

// See LatentShape. Of each head a matrix that turns its query into the kept
// space and one that makes its value: slices of one matrix in some files.
struct LatentWeights {
  Linear q_down;               // [q_rank, d_model]; empty where q_rank is 0
  std::vector<float> q_norm;   // [q_rank]
  Linear kv_down;              // [kv_rank + rope_dim, d_model]
  std::vector<float> kv_norm;  // [kv_rank]
  std::vector<Linear> keys;    // [n_heads]: [kv_rank, nope_dim]
  std::vector<Linear> values;  // [n_heads]: [value_dim, kv_rank]
};

// What a layer adds from a token's second embedding: norm(up(gelu(gate x) *
// embedding)).
struct LayerInputWeights {
  Linear gate;  // [d_layer_input, d_model]
  Linear up;    // [d_model, d_layer_input]
  NormWeights norm;
};

struct LayerWeights {
  NormWeights attention_norm;       // before; empty when there is none
  NormWeights post_attention_norm;  // after; empty when there is none
  // [n_heads * head_dim, d_model]; with ModelConfig::attention_gate twice as
  // many rows: of each head its queries, then its gates.
  Linear q;
  Linear k, v;  // [n_kv_heads * head_dim, d_model]; v may be empty
  Linear qkv;   // instead of the three where the file has them in one
  std::vector<float> q_norm, k_norm;  // as ModelConfig::qk_norm says
  std::vector<float> sinks;           // [n_heads], or empty
  Linear o;                           // [d_model, n_heads * head_dim]
  NormWeights mlp_norm, post_mlp_norm;
  MlpWeights mlp;  // of dense layers
  Linear router;   // [n_experts, d_model]; its bias counts for the weights, too
  std::vector<float> router_scale;   // [d_model], of its input; or empty
  std::vector<float> router_bias;    // [n_experts], of the choice; or empty
  std::vector<float> expert_scales;  // [n_experts], of their weights; or empty
  std::vector<MlpWeights> experts;   // [n_experts]
  MlpWeights shared_expert;
  Linear shared_expert_gate;  // [1, d_model], or empty
  // With ModelConfig::dense_beside_experts: behind the dense network, before
  // the experts and behind them.
  NormWeights dense_post_norm, experts_norm, experts_post_norm;
  ShortConvWeights short_conv;  // of layers with Mixer::kShortConv
  DeltaNetWeights delta_net;    // of layers with Mixer::kDeltaNet
  Mamba2Weights mamba2;         // of layers with Mixer::kMamba2 or both
  LatentWeights latent;         // with LatentShape
  LayerInputWeights input;      // with ModelConfig::d_layer_input
  std::vector<float> scale;     // [1], of the stream behind it; or empty
};

struct Weights {
  WeightMatrix token_embedding;           // [vocab_size, d_model], kOutIn
  std::vector<float> position_embedding;  // [context_length, d_model], or empty
  std::vector<LayerWeights> layers;       // [n_layers]
  NormWeights final_norm;
  Linear head;  // [vocab_size, d_model]; the embedding itself when tied
  // The second embedding, with ModelConfig::d_layer_input = n: a row of
  // [n_layers][n] for each token, and as much made from the first one.
  WeightMatrix layer_embedding;  // [vocab_size, n_layers * n], kOutIn
  Linear layer_projection;       // [n_layers * n, d_model]
  std::vector<float> layer_projection_norm;  // [n]
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

// An adapter that some of the weights have beside them.
struct AppliedAdapter {
  std::string path;  // as the user gave it, for messages
  float scale = 1;
  int n_matrices = 0;  // linear layers of the file that it changes
  Digest content;      // of its matrices' names, bytes and factors
  std::vector<MappedFile> files;
  std::vector<std::unique_ptr<std::byte[]>> made;  // rows in another order
};

// Move-only; the spans inside point into `files` and `made`.
struct LoadedModel {
  std::string path;         // as the user gave it, for messages
  std::string file_format;  // "GGUF v3", "safetensors", ".tinygpt v2 fp16", ...
  ModelConfig config;
  Weights weights;
  std::vector<TensorRecord> tensors;
  std::vector<MappedFile> files;
  // Weights that are not read as the file has them: of Hugging Face
  // directories in MXFP4, FP8 and NVFP4.
  std::vector<std::unique_ptr<std::byte[]>> made;
  std::uint64_t n_parameters = 0;
  // Ordered by their content, not as they were given.
  std::vector<AppliedAdapter> adapters;

  TokenizerSource tokenizer_source = TokenizerSource::kBytes;
  std::shared_ptr<const GgufFile> gguf;  // GGUF models only
  std::string tokenizer_dir;
  std::vector<std::int32_t> eos_ids;  // from the model's own configuration
  std::int32_t bos_id = -1;
  SamplingDefaults sampling;  // as its authors recommend
};

}  // namespace hearth
