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
      attention_(model.config, pool) {}

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
    if (config_.learned_positions) {
      const std::int64_t position = first_position + static_cast<int>(t);
      kernels_.add(model_.weights.position_embedding.data() + position * d, d,
                   row);
    }
  }
}

void Forward::ComputeRope(int first_position, int n_rows) {
  const std::size_t half = config_.rope.inv_freq.size();
  cos_.resize(half * static_cast<std::size_t>(n_rows));
  sin_.resize(cos_.size());
  std::size_t i = 0;
  for (int t = 0; t < n_rows; ++t) {
    const auto position = static_cast<float>(first_position + t);
    for (const float inv_freq : config_.rope.inv_freq) {
      // The angle in float, as the reference computes it; its cosine in
      // double, so that the rounded result is the same in every C library.
      const auto angle = static_cast<double>(position * inv_freq);
      cos_[i] = static_cast<float>(std::cos(angle)) * config_.rope.cos_sin_factor;
      sin_[i] = static_cast<float>(std::sin(angle)) * config_.rope.cos_sin_factor;
      ++i;
    }
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

void Forward::AddResidual(const float* delta, int n_rows) {
  const std::int64_t d = config_.d_model;
  float* x = x_.GetFloats(0);
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    kernels_.add(delta + r * d, d, x + r * d);
  });
}

void Forward::RunAttention(const LayerWeights& layer, int kv_layer, KvPort& kv,
                           int n_rows) {
  const std::int64_t d = config_.d_model;
  const std::int64_t q_dim = std::int64_t{config_.n_heads} * config_.head_dim;
  const std::int64_t kv_dim = std::int64_t{config_.n_kv_heads} * config_.head_dim;
  float* normed = normed_.GetFloats(Size(n_rows, d));
  float* q = q_.GetFloats(Size(n_rows, q_dim));
  float* k = k_.GetFloats(Size(n_rows, kv_dim));
  float* v = v_.GetFloats(Size(n_rows, kv_dim));
  float* attended = attended_.GetFloats(Size(n_rows, q_dim));
  float* delta = delta_.GetFloats(Size(n_rows, d));

  Normalize(layer.attention_norm, x_.GetFloats(0), n_rows, normed);
  linears_.Run(normed, d, n_rows,
               std::array<LinearCall, 3>{{{&layer.q, q, q_dim},
                                          {&layer.k, k, kv_dim},
                                          {&layer.v, v, kv_dim}}});
  if (config_.rope.rotary_dim > 0) {
    const std::int64_t half = config_.rope.rotary_dim / 2;
    pool_.ParallelFor(n_rows, [&](std::int64_t t, int) {
      const float* cos = cos_.data() + t * half;
      const float* sin = sin_.data() + t * half;
      for (int h = 0; h < config_.n_heads; ++h) {
        kernels_.rope(q + t * q_dim + h * config_.head_dim,
                      config_.rope.rotary_dim, cos, sin,
                      config_.rope.interleaved);
      }
      for (int h = 0; h < config_.n_kv_heads; ++h) {
        kernels_.rope(k + t * kv_dim + h * config_.head_dim,
                      config_.rope.rotary_dim, cos, sin,
                      config_.rope.interleaved);
      }
    });
  }
  kv.BeginLayer(kv_layer);
  pool_.ParallelFor(config_.n_kv_heads, [&](std::int64_t h, int) {
    kv.WriteHead(kv_layer, static_cast<int>(h), k + h * config_.head_dim,
                 v + h * config_.head_dim, kv_dim);
  });
  attention_.Run(kv, kv_layer, q, n_rows, attended);
  linears_.Run(attended, q_dim, n_rows,
               std::array<LinearCall, 1>{{{&layer.o, delta, d}}});
  AddResidual(delta, n_rows);
}

void Forward::RunMlp(const LayerWeights& layer, int n_rows) {
  const std::int64_t d = config_.d_model;
  const std::int64_t d_mlp = config_.d_mlp;
  float* normed = normed_.GetFloats(Size(n_rows, d));
  float* up = up_.GetFloats(Size(n_rows, d_mlp));
  float* delta = delta_.GetFloats(Size(n_rows, d));

  Normalize(layer.mlp_norm, x_.GetFloats(0), n_rows, normed);
  if (config_.mlp == MlpKind::kGatedSilu) {
    float* gate = gate_.GetFloats(Size(n_rows, d_mlp));
    linears_.Run(normed, d, n_rows,
                 std::array<LinearCall, 2>{
                     {{&layer.gate, gate, d_mlp}, {&layer.up, up, d_mlp}}});
    pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
      kernels_.silu_mul(gate + r * d_mlp, up + r * d_mlp, d_mlp,
                        up + r * d_mlp);
    });
  } else {
    const auto gelu = config_.mlp == MlpKind::kGeluErf ? kernels_.gelu_erf
                                                       : kernels_.gelu_tanh;
    linears_.Run(normed, d, n_rows,
                 std::array<LinearCall, 1>{{{&layer.up, up, d_mlp}}});
    pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
      gelu(up + r * d_mlp, d_mlp, up + r * d_mlp);
    });
  }
  linears_.Run(up, d_mlp, n_rows,
               std::array<LinearCall, 1>{{{&layer.down, delta, d}}});
  AddResidual(delta, n_rows);
}

Result<void> Forward::Step(std::span<const std::int32_t> tokens, KvPort& kv,
                           LogitRows rows, float* logits) {
  HEARTH_TRY(CheckStep(tokens, kv));
  const int n_rows = static_cast<int>(tokens.size());
  HEARTH_TRY(kv.Extend(n_rows));

  Embed(tokens, kv.n_tokens());
  if (config_.rope.rotary_dim > 0) ComputeRope(kv.n_tokens(), n_rows);
  for (int i = 0; i < config_.n_layers; ++i) {
    const LayerWeights& layer = model_.weights.layers[static_cast<std::size_t>(i)];
    RunAttention(layer, i, kv, n_rows);
    RunMlp(layer, n_rows);
  }
  kv.Commit();
  if (rows == LogitRows::kNone) return {};

  const std::int64_t d = config_.d_model;
  const int n_logits = rows == LogitRows::kAll ? n_rows : 1;
  const float* x = x_.GetFloats(0) + std::int64_t{n_rows - n_logits} * d;
  float* normed = normed_.GetFloats(Size(n_logits, d));
  Normalize(model_.weights.final_norm, x, n_logits, normed);
  linears_.Run(normed, d, n_logits,
               std::array<LinearCall, 1>{
                   {{&model_.weights.head, logits, config_.vocab_size}}});
  return {};
}

}  // namespace hearth
