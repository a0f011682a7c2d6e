// What a model family needs to say about itself: shapes and the choices of its
// forward pass. One description serves every family; loaders fill it from a
// file, forward.cc reads it, and identity.cc hashes it.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "model/mixer_shapes.h"
#include "model/state_shape.h"

namespace hearth {

enum class NormKind : std::uint8_t { kRmsNorm = 0, kLayerNorm = 1 };

// Where a layer's two norms stand, relative to attention and to the MLP.
enum class NormPlacement : std::uint8_t {
  kBefore = 0,  // x += f(norm(x))
  kAfter = 1,   // x += norm(f(x))
  kAround = 2,  // x += norm(f(norm(x)))
};

// An RMS norm of queries and keys before the rotation.
enum class QkNorm : std::uint8_t {
  kNone = 0,
  kPerHead = 1,  // one weight of head_dim for all heads
  kWhole = 2,    // over all heads at once
};

enum class MlpKind : std::uint8_t {
  kGatedSilu = 0,  // down(silu(gate x) * up x)
  kGeluErf = 1,    // down(gelu(up x)), exact erf form
  kGeluTanh = 2,
  kGatedGeluTanh = 3,  // down(gelu(gate x) * up x)
  // down((up' + 1) * gate' * sigmoid(1.702 gate')), gate' = min(gate x, 7), up'
  // = up x clamped to -7 to 7.
  kClampedSwiglu = 4,
  kReluSquared = 5,  // down(relu(up x)^2)
};
constexpr bool IsGated(MlpKind kind) {
  return kind != MlpKind::kGeluErf && kind != MlpKind::kGeluTanh &&
         kind != MlpKind::kReluSquared;
}

// A layer's feed-forward half.
enum class Ffn : std::uint8_t {
  kUsual = 0,  // experts where the model has them, else one dense network
  kDense = 1,
  kNone = 2,
};

// How the weights of a token's chosen experts come from the router's scores.
enum class RouterKind : std::uint8_t {
  kSoftmaxOfAll = 0,     // softmax, then the largest are chosen: sum below 1
  kSoftmaxOfChosen = 1,  // of the chosen scores alone: sum 1
  kSigmoid = 2,          // sigmoids, of which RouterRules says the rest
};

// How experts are chosen and weighed beyond RouterKind.
struct RouterRules {
  bool bias = false;      // a number of each expert counts for the choice alone
  bool normalize = true;  // kSigmoid: weights over their sum
  float scale = 1.0f;     // of the weights
  // Experts are in as many groups, of which only the best are looked into. A
  // group is as good as its best expert, or its best two together.
  int n_groups = 1, n_groups_used = 1;
  bool groups_by_two = false;

  friend bool operator==(const RouterRules&, const RouterRules&) = default;
};

enum class RopeScalingKind : std::uint8_t {
  kNone,
  kLinear,
  kLlama3,
  kYarn,
  kLongrope,
  kFactors,       // a list of divisors (GGUF's form of llama3)
  kProportional,  // all but the first pairs stand
};

// Where inv_freq came from, so that a model can be written to another format.
// The forward pass reads none of it.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::kNone;
  double base = 10000;
  double factor = 1;
  double original_context = 0;
  double low_freq_factor = 1, high_freq_factor = 4;  // llama3
  double beta_fast = 32, beta_slow = 1;              // yarn
  bool truncate = true;  // yarn: the blend starts and ends at whole indices
  double attention_factor = 0;  // yarn, longrope; 0: as the kind computes it
  double turning = 1;  // kProportional: the part of the pairs that turns
  std::vector<float> factors;  // kFactors; longrope's short ones
  std::vector<float> long_factors;
};

// Rotary positions. rotary_dim 0: none.
struct RopeConfig {
  int rotary_dim = 0;
  bool interleaved = false;     // pairs (2i, 2i+1) instead of (i, i + dim/2)
  std::vector<float> inv_freq;  // [rotary_dim / 2], scaling already applied
  float cos_sin_factor = 1.0f;  // multiplies cos and sin (yarn, longrope)
  // Longrope: the frequencies of contexts beyond the original one, or empty.
  std::vector<float> long_inv_freq;
  RopeScaling scaling;

  // Decides between the two lists of longrope, once, before any token: keys in
  // the cache are rotated already and cannot follow a later change of mind.
  void UseForContext(int context_tokens) {
    if (!long_inv_freq.empty() && context_tokens > scaling.original_context) {
      inv_freq = long_inv_freq;
    }
  }
};

// Queries grow with their position: times 1 + beta ln(1 + floor(position /
// tokens)).
struct QueryGrowth {
  float beta = 0;  // 0: they do not
  int tokens = 0;

  friend bool operator==(const QueryGrowth&, const QueryGrowth&) = default;
};

enum class RopeUse : std::uint8_t {
  kMain = 0,   // ModelConfig::rope
  kLocal = 1,  // ModelConfig::local_rope
  kNone = 2,
};

// What differs from layer to layer.
struct LayerKind {
  Mixer mixer = Mixer::kAttention;
  int window = 0;  // position i sees j with i - j < window; 0: all
  RopeUse rope = RopeUse::kMain;
  int n_kv_heads = 0;  // 0: ModelConfig::n_kv_heads
  int head_dim = 0;    // 0: ModelConfig::head_dim
  // The earlier layer whose keys and values this one attends to; -1: it owns
  // its own, but for ModelConfig::kv_anchor.
  int kv_source = -1;
  // Values are made from the same numbers as keys, before their norms.
  bool values_from_keys = false;
  Ffn ffn = Ffn::kUsual;
  int d_mlp = 0;  // 0: ModelConfig::d_mlp

  friend bool operator==(const LayerKind&, const LayerKind&) = default;
};

// Position p sees the first sink_tokens tokens, and j with p - j < window (0:
// all). When tokens between the two are out of sight, a query meets the sinks
// at the distance that it would have were they gone: it counts as position
// sink_tokens + window - 1.
struct LayerSight {
  int window = 0;
  int sink_tokens = 0;

  int SinkPosition(int position) const {
    return position < sink_tokens + window ? position
                                           : sink_tokens + window - 1;
  }
};

// What Falcon-H1 multiplies its parts by.
struct PartScales {
  float attention_out = 1, mamba_out = 1;
  float mlp_gate = 1, mlp_down = 1;
  // A Mamba-2 projection's parts: gates, inputs, what groups write and ask,
  // time steps.
  std::array<float, 5> mamba = {1, 1, 1, 1, 1};

  friend bool operator==(const PartScales&, const PartScales&) = default;
};

struct ModelConfig {
  std::string architecture;  // "llama", "qwen2", "gpt", ...
  // For people and file names; made from the file's content, never its path.
  std::string name;

  int n_layers = 0;
  int d_model = 0;
  int n_heads = 0;
  int n_kv_heads = 0;
  int head_dim = 0;
  int d_mlp = 0;
  int vocab_size = 0;
  int context_length =
      0;  // trained context; a hard limit for learned positions

  NormKind norm = NormKind::kRmsNorm;
  NormPlacement norm_placement = NormPlacement::kBefore;
  float norm_eps = 1e-5f;
  MlpKind mlp = MlpKind::kGatedSilu;
  bool learned_positions = false;
  bool tied_head = false;

  RopeConfig rope;
  RopeConfig local_rope;               // of layers with RopeUse::kLocal
  std::vector<LayerKind> layer_kinds;  // [n_layers], or empty: all the default

  float attention_scale = 1.0f;    // usually 1 / sqrt(head_dim)
  float attention_softcap = 0.0f;  // scores become cap * tanh(s / cap); 0: none
  bool attention_sinks = false;    // a learned extra score of each head
  QkNorm qk_norm = QkNorm::kNone;
  bool value_norm = false;  // an RMS norm without weight of each value head
  // Each query head comes with as many gates: what it attends to is multiplied
  // by their sigmoid.
  bool attention_gate = false;
  QueryGrowth query_growth;

  DeltaNetShape delta_net;
  Mamba2Shape mamba2;
  int conv_taps = 0;  // of the convolutions in front of or in the mixers
  LatentShape latent;

  // Numbers of a token's second embedding, of which each layer has its own; 0:
  // there is none.
  int d_layer_input = 0;

  float embedding_scale = 1.0f;
  float residual_scale = 1.0f;  // of what attention and MLP add
  float logit_scale = 1.0f;
  float logit_softcap = 0.0f;  // after the scale
  PartScales part_scales;

  int n_experts = 0;       // 0: one dense MLP in each layer
  int n_experts_used = 0;  // for each token
  int d_expert = 0;        // width of one expert
  // Width of one more that every token goes through; 0: there is none.
  int d_shared_expert = 0;
  bool shared_expert_gate = true;  // weighed by the sigmoid of its own gate
  RouterKind router = RouterKind::kSoftmaxOfAll;
  RouterRules router_rules;
  // Gemma 4: a layer with experts has its dense network, too, and norms around
  // each of the two.
  bool dense_beside_experts = false;

  // StreamingLLM: layers that would see everything see the first sink_tokens
  // tokens and the newest stream_window. 0: off.
  int sink_tokens = 0;
  int stream_window = 0;

  // YOCO: layers behind this one own no keys and values and attend to its.
  // -1: every layer owns its own.
  int kv_anchor = -1;

  // The layer that made the keys and values that `layer` attends to.
  int KvSourceOf(int layer) const {
    const int source = KindOf(layer).kv_source;
    if (source >= 0) return source;
    return kv_anchor < 0 || layer < kv_anchor ? layer : kv_anchor;
  }
  bool OwnsKv(int layer) const {
    return Attends(KindOf(layer).mixer) && KvSourceOf(layer) == layer;
  }
  // What `layer` keeps at a sequence's newest position. Delta nets and Mamba-2:
  // their matrices, then their convolution's last inputs; a short convolution:
  // these alone; attention: nothing.
  std::vector<StateShape> StatesOf(int layer) const {
    switch (KindOf(layer).mixer) {
      case Mixer::kShortConv:
        return {{StateRule::kLastInputs, {conv_taps - 1, d_model}}};
      case Mixer::kDeltaNet:
        return {
            {StateRule::kDeltaNet,
             {delta_net.n_value_heads, delta_net.key_dim, delta_net.value_dim}},
            {StateRule::kLastInputs, {conv_taps - 1, delta_net.n_channels()}}};
      case Mixer::kMamba2:
      case Mixer::kAttentionAndMamba2:
        return {{StateRule::kMamba2,
                 {mamba2.n_heads, mamba2.n_state, mamba2.head_dim}},
                {StateRule::kLastInputs, {conv_taps - 1, mamba2.n_channels()}}};
      case Mixer::kAttention:
      case Mixer::kNone:
        break;
    }
    return {};
  }
  // States of the layers before this one.
  int FirstStateOf(int layer) const {
    int n = 0;
    for (int i = 0; i < layer; ++i) n += static_cast<int>(StatesOf(i).size());
    return n;
  }
  bool HasStates() const { return FirstStateOf(n_layers) > 0; }
  // Layers that own keys and values. The cache counts these alone.
  int n_kv_layers() const { return OwnersBefore(n_layers); }
  // The number, among them, of the one that `layer` attends to.
  int KvLayerOf(int layer) const { return OwnersBefore(KvSourceOf(layer)); }
  // The layers from this one on remember nothing of a token, so that they have
  // work only for positions whose logits are wanted.
  int FirstLayerWithoutKv() const {
    int layer = n_layers;
    while (layer > 0 && !OwnsKv(layer - 1) && StatesOf(layer - 1).empty()) {
      --layer;
    }
    return layer;
  }
  // KV heads and the numbers in one head's key.
  int KvHeads(int layer) const {
    if (latent.kv_rank > 0) return 1;
    const int n = KindOf(layer).n_kv_heads;
    return n > 0 ? n : n_kv_heads;
  }
  int HeadDim(int layer) const {
    if (latent.kv_rank > 0) return latent.kept_dim();
    const int n = KindOf(layer).head_dim;
    return n > 0 ? n : head_dim;
  }
  // Numbers in one head's value; 0: those of its key serve.
  int ValueDim(int layer) const {
    return latent.kv_rank > 0 ? 0 : HeadDim(layer);
  }
  int MlpWidth(int layer) const {
    const int n = KindOf(layer).d_mlp;
    return n > 0 ? n : d_mlp;
  }
  bool HasExperts(int layer) const {
    return n_experts > 0 && KindOf(layer).ffn == Ffn::kUsual;
  }
  bool HasDense(int layer) const {
    if (KindOf(layer).ffn == Ffn::kNone) return false;
    return !HasExperts(layer) || dense_beside_experts;
  }
  // A native window stays as the model was trained with it, without sinks,
  // unless the streaming one is narrower.
  LayerSight SightOf(int layer) const {
    const int window = KindOf(layer).window;
    if (stream_window == 0 || (window > 0 && window <= stream_window)) {
      return {window, 0};
    }
    return {stream_window, sink_tokens};
  }

  LayerKind KindOf(int layer) const {
    return layer_kinds.empty() ? LayerKind{}
                               : layer_kinds[static_cast<std::size_t>(layer)];
  }

 private:
  int OwnersBefore(int layer) const {
    int n = 0;
    for (int i = 0; i < layer; ++i) n += OwnsKv(i);
    return n;
  }
};

}  // namespace hearth
