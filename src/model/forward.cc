#include "model/forward.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/check.h"

namespace hearth {
namespace {

std::size_t Size(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

}  // namespace

Forward::Forward(const LoadedModel& model, ThreadPool& pool)
    : model_(model),
      config_(model.config),
      pool_(pool),
      kernels_(ActiveKernels()),
      linears_(pool),
      attention_(model.config, pool),
      mlp_(model.config, linears_, pool),
      q_dim_(std::int64_t{config_.n_heads} * config_.head_dim),
      kv_dim_(std::int64_t{config_.n_kv_heads} * config_.head_dim),
      qkv_dim_(q_dim_ + 2 * kv_dim_) {}

Result<void> Forward::CheckStep(std::span<const std::int32_t> tokens,
                                const KvPort& kv) const {
  HEARTH_CHECK(!tokens.empty() && tokens.size() <= kStepTokensMax);
  for (const std::int32_t token : tokens) {
    if (token < 0 || token >= config_.vocab_size) {
      return {Code::kInvalidArgument,
              "token id " + std::to_string(token) +
                  " is outside the model's vocabulary of " +
                  std::to_string(config_.vocab_size)};
    }
  }
  const auto n_after = kv.n_tokens() + static_cast<std::int64_t>(tokens.size());
  if (config_.learned_positions && n_after > config_.context_length) {
    return {Code::kResourceFull,
            "the model has learned positions for " +
                std::to_string(config_.context_length) + " tokens and " +
                std::to_string(n_after) + " are needed"};
  }
  return {};
}

void Forward::Embed(std::span<const std::int32_t> tokens, int first_position) {
  const std::int64_t d = config_.d_model;
  float* x = x_.GetFloats(Size(static_cast<std::int64_t>(tokens.size()), d));
  for (std::size_t t = 0; t < tokens.size(); ++t) {
    float* row = x + static_cast<std::int64_t>(t) * d;
    kernels_.dequantize_row(model_.weights.token_embedding, tokens[t], row);
    if (config_.embedding_scale != 1.0f) {
      for (std::int64_t i = 0; i < d; ++i) row[i] *= config_.embedding_scale;
    }
    if (config_.learned_positions) {
      const std::int64_t position = first_position + static_cast<int>(t);
      kernels_.add(model_.weights.position_embedding.data() + position * d, d,
                   row);
    }
  }
}

void Forward::ComputeRope(int first_position, int n_rows) {
  if (config_.rope.rotary_dim > 0) {
    rope_.Compute(config_.rope, first_position, n_rows);
  }
  if (config_.local_rope.rotary_dim > 0) {
    local_rope_.Compute(config_.local_rope, first_position, n_rows);
  }
}

void Forward::Normalize(const NormWeights& norm, const float* x, int n_rows,
                        float* out) {
  const std::int64_t d = config_.d_model;
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    if (config_.norm == NormKind::kRmsNorm) {
      kernels_.rms_norm(x + r * d, norm.weight.data(), config_.norm_eps, d,
                        out + r * d);
    } else {
      kernels_.layer_norm(x + r * d, norm.weight.data(),
                          norm.bias.empty() ? nullptr : norm.bias.data(),
                          config_.norm_eps, d, out + r * d);
    }
  });
}

// What a sublayer reads: the residual stream, normalised where the model has a
// norm in front.
const float* Forward::NormalizeInput(const NormWeights& norm, int n_rows) {
  if (norm.weight.empty()) return x_.GetFloats(0);
  float* normed = normed_.GetFloats(Size(n_rows, config_.d_model));
  Normalize(norm, x_.GetFloats(0), n_rows, normed);
  return normed;
}

void Forward::AddResidual(const NormWeights& norm, float* delta, int n_rows) {
  const std::int64_t d = config_.d_model;
  if (!norm.weight.empty()) Normalize(norm, delta, n_rows, delta);
  float* x = x_.GetFloats(0);
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    float* row = delta + r * d;
    if (config_.residual_scale != 1.0f) {
      for (std::int64_t i = 0; i < d; ++i) row[i] *= config_.residual_scale;
    }
    kernels_.add(row, d, x + r * d);
  });
}

// Queries, keys and values into qkv_.
void Forward::Project(const LayerWeights& layer, const float* x, int n_rows) {
  float* q = qkv_.GetFloats(Size(n_rows, qkv_dim_));
  if (!layer.qkv.empty()) {
    linears_.Run(x, config_.d_model, n_rows,
                 std::array<LinearCall, 1>{{{&layer.qkv, q, qkv_dim_}}});
    return;
  }
  linears_.Run(x, config_.d_model, n_rows,
               std::array<LinearCall, 3>{
                   {{&layer.q, q, qkv_dim_},
                    {&layer.k, q + q_dim_, qkv_dim_},
                    {&layer.v, q + q_dim_ + kv_dim_, qkv_dim_}}});
}

// Norms and rotation of queries and keys, in place.
void Forward::PrepareHeads(const LayerWeights& layer, RopeUse use,
                           int n_rows) {
  const bool local = use == RopeUse::kLocal;
  const RopeConfig& rope = local ? config_.local_rope : config_.rope;
  const RopeTable& table = local ? local_rope_ : rope_;
  const bool rotate = use != RopeUse::kNone && rope.rotary_dim > 0;
  if (config_.qk_norm == QkNorm::kNone && !rotate) return;
  const std::int64_t head_dim = config_.head_dim;
  float* qkv = qkv_.GetFloats(0);
  pool_.ParallelFor(n_rows, [&](std::int64_t t, int) {
    const auto prepare = [&](float* heads, std::int64_t n,
                             const std::vector<float>& norm) {
      if (config_.qk_norm == QkNorm::kWhole) {
        kernels_.rms_norm(heads, norm.data(), config_.norm_eps, n, heads);
      }
      for (float* head = heads; head < heads + n; head += head_dim) {
        if (config_.qk_norm == QkNorm::kPerHead) {
          kernels_.rms_norm(head, norm.data(), config_.norm_eps, head_dim,
                            head);
        }
        if (rotate) {
          kernels_.rope(head, rope.rotary_dim, table.cos(t), table.sin(t),
                        rope.interleaved);
        }
      }
    };
    float* row = qkv + t * qkv_dim_;
    prepare(row, q_dim_, layer.q_norm);
    prepare(row + q_dim_, kv_dim_, layer.k_norm);
  });
}

void Forward::RunAttention(const LayerWeights& layer, int kv_layer, KvPort& kv,
                           int n_rows) {
  const LayerKind kind = config_.KindOf(kv_layer);
  Project(layer, NormalizeInput(layer.attention_norm, n_rows), n_rows);
  PrepareHeads(layer, kind.rope, n_rows);
  const float* q = qkv_.GetFloats(0);
  const float* k = q + q_dim_;
  kv.BeginLayer(kv_layer);
  pool_.ParallelFor(config_.n_kv_heads, [&](std::int64_t h, int) {
    const float* head = k + h * config_.head_dim;
    kv.WriteHead(kv_layer, static_cast<int>(h), head, head + kv_dim_, qkv_dim_);
  });
  float* attended = attended_.GetFloats(Size(n_rows, q_dim_));
  attention_.Run({.kv = kv,
                  .kv_layer = kv_layer,
                  .q = q,
                  .q_stride = qkv_dim_,
                  .n_rows = n_rows,
                  .window = kind.window,
                  .sinks = layer.sinks.empty() ? nullptr : layer.sinks.data(),
                  .out = attended});
  float* delta = delta_.GetFloats(Size(n_rows, config_.d_model));
  linears_.Run(attended, q_dim_, n_rows,
               std::array<LinearCall, 1>{{{&layer.o, delta, config_.d_model}}});
  AddResidual(layer.post_attention_norm, delta, n_rows);
}

void Forward::RunMlp(const LayerWeights& layer, int n_rows) {
  float* delta = delta_.GetFloats(Size(n_rows, config_.d_model));
  mlp_.Run(layer, NormalizeInput(layer.mlp_norm, n_rows), n_rows, delta);
  AddResidual(layer.post_mlp_norm, delta, n_rows);
}

// Of the last n_logits of n_rows rows.
void Forward::ComputeLogits(int n_rows, int n_logits, float* logits) {
  const std::int64_t d = config_.d_model;
  const std::int64_t n_vocab = config_.vocab_size;
  const float* x = x_.GetFloats(0) + std::int64_t{n_rows - n_logits} * d;
  float* normed = normed_.GetFloats(Size(n_logits, d));
  Normalize(model_.weights.final_norm, x, n_logits, normed);
  linears_.Run(normed, d, n_logits,
               std::array<LinearCall, 1>{
                   {{&model_.weights.head, logits, n_vocab}}});
  if (config_.logit_scale == 1.0f && config_.logit_softcap == 0.0f) return;
  // In pieces, because a vocabulary is long and rows are few.
  constexpr std::int64_t kPiece = 4096;
  const std::int64_t n = n_logits * n_vocab;
  pool_.ParallelFor((n + kPiece - 1) / kPiece, [&](std::int64_t i, int) {
    float* piece = logits + i * kPiece;
    const std::int64_t size = std::min(kPiece, n - i * kPiece);
    for (std::int64_t k = 0; k < size; ++k) piece[k] *= config_.logit_scale;
    if (config_.logit_softcap > 0.0f) {
      kernels_.softcap(config_.logit_softcap, size, piece);
    }
  });
}

Result<void> Forward::Step(std::span<const std::int32_t> tokens, KvPort& kv,
                           LogitRows rows, float* logits) {
  HEARTH_TRY(CheckStep(tokens, kv));
  const int n_rows = static_cast<int>(tokens.size());
  HEARTH_TRY(kv.Extend(n_rows));

  Embed(tokens, kv.n_tokens());
  ComputeRope(kv.n_tokens(), n_rows);
  for (int i = 0; i < config_.n_layers; ++i) {
    const LayerWeights& layer = model_.weights.layers[static_cast<std::size_t>(i)];
    RunAttention(layer, i, kv, n_rows);
    RunMlp(layer, n_rows);
  }
  kv.Commit();
  if (rows != LogitRows::kNone) {
    ComputeLogits(n_rows, rows == LogitRows::kAll ? n_rows : 1, logits);
  }
  return {};
}

}  // namespace hearth
