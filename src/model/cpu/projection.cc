#include "model/cpu/projection.h"

#include <algorithm>
#include <array>

namespace hearth {
namespace {

std::size_t Size(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

}  // namespace

Projection::Projection(const ModelConfig& config, LinearRunner& linears,
                       ThreadPool& pool)
    : config_(config),
      linears_(linears),
      pool_(pool),
      kernels_(ActiveKernels()),
      latent_(config, linears, pool) {}

Result<void> Projection::Reserve(std::span<const LayerPlan> layers,
                                 int n_rows) {
  std::int64_t q_dim = 0;
  int value_dim = 0;
  for (const LayerPlan& layer : layers) {
    q_dim = std::max(q_dim, layer.q_dim());
    value_dim = std::max(value_dim, layer.value_dim);
  }
  if (config_.value_norm) ones_.resize(static_cast<std::size_t>(value_dim), 1);
  HEARTH_TRY(latent_.Reserve(layers, n_rows));
  if (!config_.attention_gate) return {};
  return gated_queries_.ReserveFloats(Size(n_rows, 2 * q_dim));
}

void Projection::Run(const LayerPlan& layer, const float* x, int n_rows,
                     float* qkv, float* gate) {
  if (config_.latent.kv_rank > 0) return latent_.Project(layer, x, n_rows, qkv);
  const LayerWeights& w = *layer.weights;
  const std::int64_t stride = layer.qkv_dim();
  float* q = qkv;
  float* k = q + layer.q_dim();
  float* v = k + layer.kv_dim();
  const auto run = [&](std::span<const LinearCall> calls) {
    linears_.Run(x, config_.d_model, n_rows, calls);
  };
  if (config_.attention_gate) {
    const std::int64_t wide = 2 * layer.q_dim();
    float* both = gated_queries_.GetFloats(Size(n_rows, wide));
    run(std::array<LinearCall, 3>{
        {{&w.q, both, wide}, {&w.k, k, stride}, {&w.v, v, stride}}});
    SplitGates(layer, both, n_rows, qkv, gate);
  } else if (!w.qkv.empty()) {
    run(std::array<LinearCall, 1>{{{&w.qkv, q, stride}}});
  } else if (w.k.empty()) {
    run(std::array<LinearCall, 1>{{{&w.q, q, stride}}});
  } else if (w.v.empty()) {
    run(std::array<LinearCall, 2>{{{&w.q, q, stride}, {&w.k, k, stride}}});
    for (std::int64_t t = 0; t < n_rows; ++t) {
      std::copy_n(k + t * stride, layer.kv_dim(), v + t * stride);
    }
  } else {
    run(std::array<LinearCall, 3>{
        {{&w.q, q, stride}, {&w.k, k, stride}, {&w.v, v, stride}}});
  }
}

// From [queries, gates] of each head.
void Projection::SplitGates(const LayerPlan& layer, const float* both,
                            int n_rows, float* qkv, float* gate) {
  const std::int64_t d = layer.head_dim;
  pool_.ParallelFor(n_rows, [&](std::int64_t t, int) {
    for (std::int64_t h = 0; h < layer.n_heads; ++h) {
      const float* from = both + (t * layer.n_heads + h) * 2 * d;
      std::copy_n(from, d, qkv + t * layer.qkv_dim() + h * d);
      std::copy_n(from + d, d, gate + t * layer.q_dim() + h * d);
    }
  });
}

void Projection::NormalizeHeads(const LayerPlan& layer, int n_rows,
                                float* qkv) {
  const bool has_norms = !layer.weights->q_norm.empty();
  const bool has_value_norm = config_.value_norm && layer.owns_kv;
  if (!has_norms && !has_value_norm) return;
  pool_.ParallelFor(n_rows, [&](std::int64_t t, int) {
    const auto normalize = [&](float* heads, std::int64_t n, std::int64_t step,
                               const std::vector<float>& norm) {
      for (float* head = heads; head < heads + n; head += step) {
        kernels_.rms_norm(head, norm.data(), config_.norm_eps, step, head);
      }
    };
    const bool whole = config_.qk_norm == QkNorm::kWhole;
    float* q = qkv + t * layer.qkv_dim();
    float* k = q + layer.q_dim();
    if (has_norms) {
      normalize(q, layer.q_dim(), whole ? layer.q_dim() : layer.head_dim,
                layer.weights->q_norm);
    }
    if (has_norms && layer.owns_kv) {
      normalize(k, layer.kv_dim(), whole ? layer.kv_dim() : layer.head_dim,
                layer.weights->k_norm);
    }
    if (has_value_norm) {
      normalize(k + layer.kv_dim(), layer.v_dim(), layer.value_dim, ones_);
    }
  });
}

void Projection::Output(const LayerPlan& layer, const float* attended,
                        int n_rows, float* out) {
  if (config_.latent.kv_rank > 0) {
    attended = latent_.Values(layer, attended, n_rows);
  }
  const Linear& o = layer.weights->o;
  linears_.Run(attended, o.w.n_in, n_rows,
               std::array<LinearCall, 1>{{{&o, out, o.w.n_out}}});
  const float scale = config_.part_scales.attention_out;
  if (scale == 1.0f) return;
  for (std::int64_t i = 0; i < n_rows * o.w.n_out; ++i) out[i] *= scale;
}

}  // namespace hearth
