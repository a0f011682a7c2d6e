// What a model family needs to say about itself: shapes and the choices of its
// forward pass. One description serves every family; loaders fill it from a
// file, forward.cc reads it, and identity.cc hashes it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth {

enum class NormKind : std::uint8_t { kRmsNorm = 0, kLayerNorm = 1 };

enum class MlpKind : std::uint8_t {
  kGatedSilu = 0,  // down(silu(gate x) * up x)
  kGeluErf = 1,    // down(gelu(up x)), exact erf form
  kGeluTanh = 2,
};

// Rotary positions. rotary_dim 0: none.
struct RopeConfig {
  int rotary_dim = 0;
  bool interleaved = false;     // pairs (2i, 2i+1) instead of (i, i + dim/2)
  std::vector<float> inv_freq;  // [rotary_dim / 2], scaling already applied
  float cos_sin_factor = 1.0f;  // multiplies cos and sin (yarn, longrope)
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
  int context_length = 0;  // trained context; a hard limit for learned positions

  NormKind norm = NormKind::kRmsNorm;
  float norm_eps = 1e-5f;
  MlpKind mlp = MlpKind::kGatedSilu;
  bool learned_positions = false;
  bool tied_head = false;
  RopeConfig rope;
  float attention_scale = 1.0f;  // usually 1 / sqrt(head_dim)
};

}  // namespace hearth
