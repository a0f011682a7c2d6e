// The one place that says what each file format calls each weight.
//
// A role is a place in hearth's Weights; a scheme gives its name stem, in which
// the first {} stands for the layer, a second one for the expert, and ".weight"
// or ".bias" follows. A stem that ends in '#' is the whole name, to which only
// "_bias" is added. An empty stem: the format has no such tensor.
//
// The roles kExpert...: a stem with two {} names one matrix of each expert, a
// stem with one {} a three-dimensional tensor of all.
#pragma once

#include <array>
#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace hearth {

enum class Role : std::size_t {
  kTokenEmbedding,
  kPositionEmbedding,
  kFinalNorm,
  kHead,
  kRopeFactors,  // divisors of the rotary frequencies
  kAttentionNorm,
  kQ,
  kK,
  kV,
  kO,
  kMlpNorm,
  kGate,
  kUp,
  kDown,
  kRopeLong,  // longrope's divisors, in GGUF
  kRopeShort,
  kPostAttentionNorm,
  kPostMlpNorm,
  kQNorm,
  kKNorm,
  kSinks,
  kQkv,     // q, k and v in one
  kGateUp,  // gate and up in one
  kRouter,
  kExpertGate,
  kExpertUp,
  kExpertGateUp,
  kExpertDown,
  kCrossQ,  // of layers that attend to another layer's keys and values
  kCrossO,
  kSharedGate,  // of the expert that every token goes through
  kSharedUp,
  kSharedDown,
  kSharedExpertGate,
  kShortConvIn,
  kShortConvTaps,
  kShortConvOut,
  kDeltaQkv,
  kDeltaGate,
  kDeltaQkvGate,  // the two in one, key head by key head
  kDeltaRate,
  kDeltaDecay,
  kDeltaRateDecay,  // the two in one, key head by key head
  kDeltaTaps,
  kDeltaScale,  // A_log, or in GGUF -exp(A_log)
  kDeltaBias,   // a bias without a weight
  kDeltaNorm,
  kDeltaOut,
  kMambaIn,
  kMambaTaps,
  kMambaScale,  // as kDeltaScale
  kMambaStep,   // a bias without a weight
  kMambaSkip,
  kMambaNorm,
  kMambaOut,
  kLayerEmbedding,  // the tokens' second embedding, and what is made of it
  kLayerProjection,
  kLayerProjectionNorm,
  kInputGate,
  kInputUp,
  kInputNorm,
  kLayerScale,
  kRouterScale,
  kRouterBias,  // of the choice alone
  kExpertScales,
  kDensePostNorm,  // of dense networks beside experts
  kExpertsNorm,
  kExpertsPostNorm,
  kSharedGateUp,  // gate and up in one
  kQDown,         // latent attention
  kQDownNorm,
  kQUp,
  kKvDown,
  kKvDownNorm,
  kKvUp,      // of each head what makes its keys, then its values
  kKeyHeads,  // the former, each transposed, and the latter
  kValueHeads,
};
inline constexpr std::size_t kRoleCount = 77;

using NameScheme = std::array<std::string_view, kRoleCount>;

// `base` with other stems for some roles: what a family file says.
constexpr NameScheme WithNames(
    NameScheme base,
    std::initializer_list<std::pair<Role, std::string_view>> changes) {
  for (const auto& [role, stem] : changes) {
    base[static_cast<std::size_t>(role)] = stem;
  }
  return base;
}

inline constexpr NameScheme kGgufNames = {"token_embd",
                                          "position_embd",
                                          "output_norm",
                                          "output",
                                          "rope_freqs",
                                          "blk.{}.attn_norm",
                                          "blk.{}.attn_q",
                                          "blk.{}.attn_k",
                                          "blk.{}.attn_v",
                                          "blk.{}.attn_output",
                                          "blk.{}.ffn_norm",
                                          "blk.{}.ffn_gate",
                                          "blk.{}.ffn_up",
                                          "blk.{}.ffn_down",
                                          "rope_factors_long",
                                          "rope_factors_short",
                                          "blk.{}.post_attention_norm",
                                          "blk.{}.post_ffw_norm",
                                          "blk.{}.attn_q_norm",
                                          "blk.{}.attn_k_norm",
                                          "blk.{}.attn_sinks",
                                          "blk.{}.attn_qkv",
                                          "blk.{}.ffn_up",
                                          "blk.{}.ffn_gate_inp",
                                          "blk.{}.ffn_gate_exps",
                                          "blk.{}.ffn_up_exps",
                                          "",
                                          "blk.{}.ffn_down_exps"};

inline constexpr NameScheme kHuggingFaceNames = {
    "model.embed_tokens",
    "",
    "model.norm",
    "lm_head",
    "",
    "model.layers.{}.input_layernorm",
    "model.layers.{}.self_attn.q_proj",
    "model.layers.{}.self_attn.k_proj",
    "model.layers.{}.self_attn.v_proj",
    "model.layers.{}.self_attn.o_proj",
    "model.layers.{}.post_attention_layernorm",
    "model.layers.{}.mlp.gate_proj",
    "model.layers.{}.mlp.up_proj",
    "model.layers.{}.mlp.down_proj",
    "",
    "",
    "",
    "",
    "model.layers.{}.self_attn.q_norm",
    "model.layers.{}.self_attn.k_norm",
    "model.layers.{}.self_attn.sinks#",
    "model.layers.{}.self_attn.qkv_proj",
    "model.layers.{}.mlp.gate_up_proj",
    "model.layers.{}.mlp.gate",
    "model.layers.{}.mlp.experts.{}.gate_proj",
    "model.layers.{}.mlp.experts.{}.up_proj",
    "",
    "model.layers.{}.mlp.experts.{}.down_proj"};

inline constexpr NameScheme kTinygptNames =
    WithNames({}, {{Role::kTokenEmbedding, "token_embedding"},
                   {Role::kPositionEmbedding, "position_embedding"},
                   {Role::kFinalNorm, "ln_final"},
                   {Role::kHead, "lm_head"},
                   {Role::kAttentionNorm, "blocks.{}.ln1"},
                   {Role::kQ, "blocks.{}.attn.q_proj"},
                   {Role::kK, "blocks.{}.attn.k_proj"},
                   {Role::kV, "blocks.{}.attn.v_proj"},
                   {Role::kO, "blocks.{}.attn.o_proj"},
                   {Role::kMlpNorm, "blocks.{}.ln2"},
                   {Role::kUp, "blocks.{}.mlp.fc_in"},
                   {Role::kDown, "blocks.{}.mlp.fc_out"},
                   {Role::kCrossQ, "blocks.{}.cross_attn.q_proj"},
                   {Role::kCrossO, "blocks.{}.cross_attn.o_proj"}});

// `layer` and `expert` are ignored where the stem has no place for them.
std::string WeightName(const NameScheme& scheme, Role role, int layer = 0,
                       int expert = 0);
std::string BiasName(const NameScheme& scheme, Role role, int layer = 0,
                     int expert = 0);
// Whether every expert has a tensor of its own.
bool NamesEachExpert(const NameScheme& scheme, Role role);

}  // namespace hearth
