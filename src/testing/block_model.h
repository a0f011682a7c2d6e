// A small rotary model whose matrices are random blocks of one number format.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <vector>

#include "base/bytes.h"
#include "model/weights.h"
#include "tensor/half.h"

namespace hearth {

struct BlockShape {
  int n_layers = 2, n_heads = 4, n_kv_heads = 2, head_dim = 64;
  int d_mlp = 512, vocab = 67;
};

// Owns the weights' memory: keep it as long as the model is used.
class BlockModel {
 public:
  // Every third matrix is of `second`.
  BlockModel(DType first, DType second, const BlockShape& s = {},
             unsigned seed = 1)
      : first_(first), second_(second), rng_(seed) {
    ModelConfig& c = model.config;
    c.architecture = "llama";
    c.name = "blocks";
    c.n_layers = s.n_layers;
    c.d_model = s.n_heads * s.head_dim;
    c.n_heads = s.n_heads;
    c.n_kv_heads = s.n_kv_heads;
    c.head_dim = s.head_dim;
    c.d_mlp = s.d_mlp;
    c.vocab_size = s.vocab;
    c.context_length = 65536;
    c.attention_scale = 0.125f;
    c.norm_eps = 1e-6f;
    c.rope.rotary_dim = s.head_dim;
    for (int i = 0; i < s.head_dim / 2; ++i) {
      c.rope.inv_freq.push_back(1.0f / static_cast<float>(1 + i * i));
    }
    Weights& w = model.weights;
    w.token_embedding = Matrix(s.vocab, c.d_model);
    w.head.w = w.token_embedding;
    w.final_norm.weight.assign(static_cast<std::size_t>(c.d_model), 1.0f);
    const int kv_dim = s.n_kv_heads * s.head_dim;
    for (int i = 0; i < s.n_layers; ++i) {
      LayerWeights layer;
      layer.attention_norm = layer.mlp_norm = w.final_norm;
      layer.q.w = Matrix(c.d_model, c.d_model);
      layer.k.w = Matrix(kv_dim, c.d_model);
      layer.v.w = Matrix(kv_dim, c.d_model);
      layer.v.bias.assign(static_cast<std::size_t>(kv_dim), 0.25f);
      layer.o.w = Matrix(c.d_model, c.d_model);
      layer.mlp.gate.w = Matrix(s.d_mlp, c.d_model);
      layer.mlp.up.w = Matrix(s.d_mlp, c.d_model);
      layer.mlp.down.w = Matrix(c.d_model, s.d_mlp);
      w.layers.push_back(std::move(layer));
    }
  }

  LoadedModel model;

 private:
  WeightMatrix Matrix(int n_out, int n_in) {
    WeightMatrix w;
    w.dtype = n_made_++ % 3 == 2 ? second_ : first_;
    w.n_out = n_out;
    w.n_in = n_in;
    const DTypeInfo& info = InfoOf(w.dtype);
    const std::size_t n_blocks =
        static_cast<std::size_t>(n_out * n_in / info.block_elements);
    auto& bytes = memory_.emplace_back(std::make_unique<std::vector<std::byte>>(
        n_blocks * static_cast<std::size_t>(info.block_bytes)));
    const std::vector<std::byte>& some = SomeBlocks(w.dtype);
    // Large matrices repeat the same blocks, from another one on each time.
    const auto block = static_cast<std::size_t>(info.block_bytes);
    std::size_t from = rng_() % (some.size() / block) * block;
    for (std::size_t at = 0; at < bytes->size(); from = 0) {
      const std::size_t n = std::min(bytes->size() - at, some.size() - from);
      std::memcpy(bytes->data() + at, some.data() + from, n);
      at += n;
    }
    w.data = bytes->data();
    return w;
  }

  const std::vector<std::byte>& SomeBlocks(DType dtype) {
    std::vector<std::byte>& blocks = blocks_[dtype];
    if (!blocks.empty()) return blocks;
    const auto bytes = static_cast<std::size_t>(InfoOf(dtype).block_bytes);
    blocks.resize(4001 * bytes);
    for (std::byte& byte : blocks) byte = static_cast<std::byte>(rng_());
    for (std::size_t at = 0; at < blocks.size(); at += bytes) {
      MakeSane(dtype, blocks.data() + at);
    }
    return blocks;
  }

  // Scales of a size that a model has; either sign.
  void MakeSane(DType dtype, std::byte* block) {
    std::uniform_real_distribution<float> scale(-2e-3f, 2e-3f);
    const auto half = [&](int at, float factor) {
      StoreLe(block + at, ToF16(factor * scale(rng_)).bits);
    };
    switch (dtype) {
      case DType::kF32:
        StoreLe(block, 20 * scale(rng_));
        break;
      case DType::kF16:
        half(0, 20);
        break;
      case DType::kBF16:
        StoreLe(block, ToBF16(20 * scale(rng_)).bits);
        break;
      case DType::kQ4_1:
      case DType::kQ5_1:
        half(0, 4);
        half(2, 20);
        break;
      case DType::kQ2_K:
        half(80, 1);
        half(82, 1);
        break;
      case DType::kQ3_K:
        half(108, 0.3f);
        break;
      case DType::kQ4_K:
      case DType::kQ5_K:
        half(0, 0.1f);
        half(2, 0.5f);
        break;
      case DType::kQ6_K:
        half(208, 0.01f);
        break;
      case DType::kIQ4_XS:
        half(0, 0.01f);
        break;
      case DType::kMXFP4:
        block[0] = static_cast<std::byte>(118 + rng_() % 5);
        break;
      default:
        half(0, 1);
        break;
    }
  }

  DType first_, second_;
  std::mt19937 rng_;
  int n_made_ = 0;
  std::map<DType, std::vector<std::byte>> blocks_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> memory_;
};

}  // namespace hearth
