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
    return {Code::kResourceFull, "the model has learned positions for " +
                                     std::to_string(config_.context_length) +
                                     " tokens and " + std::to_string(n_after) +
                                     " are needed"};
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

// Queries, keys and values into qkv_; of a layer that owns no keys and values,
// the queries.
void Forward::Project(const LayerWeights& layer, const float* x, int n_rows) {
  float* q = qkv_.GetFloats(Size(n_rows, qkv_dim_));
  if (!layer.qkv.empty()) {
    linears_.Run(x, config_.d_model, n_rows,
                 std::array<LinearCall, 1>{{{&layer.qkv, q, qkv_dim_}}});
    return;
  }
  if (layer.k.empty()) {
    linears_.Run(x, config_.d_model, n_rows,
                 std::array<LinearCall, 1>{{{&layer.q, q, qkv_dim_}}});
    return;
  }
  linears_.Run(
      x, config_.d_model, n_rows,
      std::array<LinearCall, 3>{{{&layer.q, q, qkv_dim_},
                                 {&layer.k, q + q_dim_, qkv_dim_},
                                 {&layer.v, q + q_dim_ + kv_dim_, qkv_dim_}}});
}

// Norms of queries and keys, in place.
void Forward::NormalizeHeads(const LayerWeights& layer, int n_rows) {
  if (config_.qk_norm == QkNorm::kNone) return;
  const std::int64_t head_dim = config_.head_dim;
  float* qkv = qkv_.GetFloats(0);
  pool_.ParallelFor(n_rows, [&](std::int64_t t, int) {
    const auto normalize = [&](float* heads, std::int64_t n,
                               const std::vector<float>& norm) {
      const std::int64_t step =
          config_.qk_norm == QkNorm::kWhole ? n : head_dim;
      for (float* head = heads; head < heads + n; head += step) {
        kernels_.rms_norm(head, norm.data(), config_.norm_eps, step, head);
      }
    };
    float* row = qkv + t * qkv_dim_;
    normalize(row, q_dim_, layer.q_norm);
    normalize(row + q_dim_, kv_dim_, layer.k_norm);
  });
}

// The queries at the positions that they count as for the sink tokens, before
// RotateHeads has turned them. No copy while no token is out of sight: then
// both are the same.
QueryRows Forward::RotateSinkQueries(RopeUse use, LayerSight sight,
                                     int first_position, int n_rows) {
  const float* q = qkv_.GetFloats(0);
  const QueryRows same{q, qkv_dim_};
  if (sight.sink_tokens == 0 || use == RopeUse::kNone) return same;
  const int last = first_position + n_rows - 1;
  if (sight.SinkPosition(last) == last) return same;
  const RopeConfig& rope =
      use == RopeUse::kLocal ? config_.local_rope : config_.rope;
  std::vector<int> positions;
  for (int t = 0; t < n_rows; ++t) {
    positions.push_back(sight.SinkPosition(first_position + t));
  }
  sink_rope_.Compute(rope, positions);
  float* out = q_sink_.GetFloats(Size(n_rows, q_dim_));
  pool_.ParallelFor(n_rows, [&](std::int64_t t, int) {
    float* row = out + t * q_dim_;
    std::copy_n(q + t * qkv_dim_, q_dim_, row);
    for (float* head = row; head < row + q_dim_; head += config_.head_dim) {
      kernels_.rope(head, rope.rotary_dim, sink_rope_.cos(t), sink_rope_.sin(t),
                    rope.interleaved);
    }
  });
  return {out, q_dim_};
}

// Rotation of queries and keys, in place.
void Forward::RotateHeads(RopeUse use, int n_rows) {
  const bool local = use == RopeUse::kLocal;
  const RopeConfig& rope = local ? config_.local_rope : config_.rope;
  const RopeTable& table = local ? local_rope_ : rope_;
  if (use == RopeUse::kNone || rope.rotary_dim == 0) return;
  float* qkv = qkv_.GetFloats(0);
  pool_.ParallelFor(n_rows, [&](std::int64_t t, int) {
    float* row = qkv + t * qkv_dim_;
    for (float* head = row; head < row + q_dim_ + kv_dim_;
         head += config_.head_dim) {
      kernels_.rope(head, rope.rotary_dim, table.cos(t), table.sin(t),
                    rope.interleaved);
    }
  });
}

void Forward::RunAttention(int layer_index, KvPort& kv, int first_position,
                           int n_rows) {
  const LayerWeights& layer =
      model_.weights.layers[static_cast<std::size_t>(layer_index)];
  const LayerKind kind = config_.KindOf(layer_index);
  const LayerSight sight = config_.SightOf(layer_index);
  const int kv_layer = config_.KvLayerOf(layer_index);
  const bool owns_kv = kv_layer == layer_index;
  Project(layer, NormalizeInput(layer.attention_norm, n_rows), n_rows);
  NormalizeHeads(layer, n_rows);
  const QueryRows q_sink =
      RotateSinkQueries(kind.rope, sight, first_position, n_rows);
  RotateHeads(kind.rope, n_rows);
  const float* q = qkv_.GetFloats(0);
  if (owns_kv) {
    const float* k = q + q_dim_;
    kv.BeginLayer(kv_layer);
    const auto write = [&](std::int64_t h, int) {
      const float* head = k + h * config_.head_dim;
      kv.WriteHead(kv_layer, static_cast<int>(h), head, head + kv_dim_,
                   qkv_dim_);
    };
    if (n_rows == 1) {
      // Less work than handing it out.
      for (int h = 0; h < config_.n_kv_heads; ++h) write(h, 0);
    } else {
      pool_.ParallelFor(config_.n_kv_heads, write);
    }
  }
  float* attended = attended_.GetFloats(Size(n_rows, q_dim_));
  attention_.Run({.kv = kv,
                  .kv_layer = kv_layer,
                  .q = {q, qkv_dim_},
                  .q_sink = q_sink,
                  .n_rows = n_rows,
                  .first_position = first_position,
                  .sight = sight,
                  .sinks = layer.sinks.empty() ? nullptr : layer.sinks.data(),
                  .out = attended});
  float* delta = delta_.GetFloats(Size(n_rows, config_.d_model));
  linears_.Run(attended, q_dim_, n_rows,
               std::array<LinearCall, 1>{{{&layer.o, delta, config_.d_model}}});
  AddResidual(layer.post_attention_norm, delta, n_rows);
}

void Forward::KeepLastRow(int n_rows) {
  const std::int64_t d = config_.d_model;
  float* x = x_.GetFloats(0);
  std::copy_n(x + (n_rows - 1) * d, d, x);
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
  linears_.Run(
      normed, d, n_logits,
      std::array<LinearCall, 1>{{{&model_.weights.head, logits, n_vocab}}});
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
  int n_rows = static_cast<int>(tokens.size());
  HEARTH_TRY(kv.Extend(n_rows));

  int first_position = kv.n_tokens();
  Embed(tokens, first_position);
  ComputeRope(first_position, n_rows);
  for (int i = 0; i < config_.n_layers; ++i) {
    if (i == config_.n_kv_layers() && rows != LogitRows::kAll) {
      // All keys and values are made: the layers behind have work only for
      // positions whose logits are wanted.
      if (rows == LogitRows::kNone) break;
      KeepLastRow(n_rows);
      first_position += n_rows - 1;
      n_rows = 1;
      ComputeRope(first_position, n_rows);
    }
    RunAttention(i, kv, first_position, n_rows);
    RunMlp(model_.weights.layers[static_cast<std::size_t>(i)], n_rows);
  }
  kv.Commit();
  if (rows != LogitRows::kNone) {
    ComputeLogits(n_rows, rows == LogitRows::kAll ? n_rows : 1, logits);
  }
  return {};
}

}  // namespace hearth
