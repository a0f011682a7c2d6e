// The one place that says what each file format calls each weight.
//
// A role is a place in hearth's Weights; a scheme gives its name stem, in which
// {} stands for the layer, and ".weight" or ".bias" follows. An empty stem: the
// format has no such tensor.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

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
};
inline constexpr std::size_t kRoleCount = 14;

using NameScheme = std::array<std::string_view, kRoleCount>;

inline constexpr NameScheme kGgufNames = {
    "token_embd",    "position_embd",      "output_norm",     "output",
    "rope_freqs",    "blk.{}.attn_norm",   "blk.{}.attn_q",   "blk.{}.attn_k",
    "blk.{}.attn_v", "blk.{}.attn_output", "blk.{}.ffn_norm", "blk.{}.ffn_gate",
    "blk.{}.ffn_up", "blk.{}.ffn_down"};

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
    "model.layers.{}.mlp.down_proj"};

inline constexpr NameScheme kTinygptNames = {"token_embedding",
                                             "position_embedding",
                                             "ln_final",
                                             "lm_head",
                                             "",
                                             "blocks.{}.ln1",
                                             "blocks.{}.attn.q_proj",
                                             "blocks.{}.attn.k_proj",
                                             "blocks.{}.attn.v_proj",
                                             "blocks.{}.attn.o_proj",
                                             "blocks.{}.ln2",
                                             "",
                                             "blocks.{}.mlp.fc_in",
                                             "blocks.{}.mlp.fc_out"};

// `layer` is ignored for roles outside the layers.
std::string WeightName(const NameScheme& scheme, Role role, int layer = 0);
std::string BiasName(const NameScheme& scheme, Role role, int layer = 0);

}  // namespace hearth
