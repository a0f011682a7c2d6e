#include "model/cpu/mlp.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace hearth {
namespace {

// Of kClampedSwiglu.
constexpr float kSwigluLimit = 7.0f;
constexpr float kSwigluAlpha = 1.702f;

std::size_t Size(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

}  // namespace

Mlp::Mlp(const ModelConfig& config, LinearRunner& linears, ThreadPool& pool)
    : config_(config),
      router_{config.router, config.router_rules, config.n_experts,
              config.n_experts_used},
      linears_(linears),
      pool_(pool),
      kernels_(ActiveKernels()),
      rows_of_(static_cast<std::size_t>(config.n_experts)) {}

std::int64_t Mlp::HiddenWidth() const {
  int width = config_.n_experts > 0
                  ? std::max(config_.d_expert, config_.d_shared_expert)
                  : 0;
  for (int i = 0; i < config_.n_layers; ++i) {
    if (config_.HasDense(i)) width = std::max(width, config_.MlpWidth(i));
  }
  return IsGated(config_.mlp) ? 2 * std::int64_t{width} : width;
}

Result<void> Mlp::Reserve(int n_rows) {
  const std::size_t hidden = Size(n_rows, HiddenWidth());
  HEARTH_TRY(hidden_.ReserveFloats(hidden));
  HEARTH_TRY(interleaved_.ReserveFloats(IsGated(config_.mlp) ? hidden : 0));
  if (config_.n_experts == 0) return {};
  const std::size_t stream = Size(n_rows, config_.d_model);
  HEARTH_TRY(scores_.ReserveFloats(Size(n_rows, config_.n_experts)));
  HEARTH_TRY(gathered_.ReserveFloats(stream));
  HEARTH_TRY(expert_out_.ReserveFloats(stream));
  if (!config_.dense_beside_experts) return {};
  HEARTH_TRY(beside_.ReserveFloats(stream));
  HEARTH_TRY(routed_.ReserveFloats(stream));
  return expert_in_.ReserveFloats(stream);
}

void Mlp::Run(const LayerPlan& layer, const float* x, const float* in,
              int n_rows, float* out) {
  if (!layer.has_experts) {
    RunDense(layer.weights->mlp, layer.mlp_width, in, n_rows, out);
  } else if (layer.has_dense) {
    RunBoth(layer, x, in, n_rows, out);
  } else {
    RunExperts(*layer.weights, in, in, n_rows, out);
  }
}

void Mlp::Normalize(const NormWeights& norm, const float* x, int n_rows,
                    float* out) {
  const std::int64_t d = config_.d_model;
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    kernels_.rms_norm(x + r * d, norm.weight.data(), config_.norm_eps, d,
                      out + r * d);
  });
}

void Mlp::Scale(float factor, std::int64_t n, float* x) {
  if (factor == 1.0f) return;
  for (std::int64_t i = 0; i < n; ++i) x[i] *= factor;
}

// norm(dense(in)) + norm(experts(norm x)), of which the router sees another
// norm of x.
void Mlp::RunBoth(const LayerPlan& layer, const float* x, const float* in,
                  int n_rows, float* out) {
  const LayerWeights& w = *layer.weights;
  const std::int64_t d = config_.d_model;
  const std::size_t stream = Size(n_rows, d);
  float* beside = beside_.GetFloats(stream);
  float* routed = routed_.GetFloats(stream);
  float* expert_in = expert_in_.GetFloats(stream);
  RunDense(w.mlp, layer.mlp_width, in, n_rows, beside);
  Normalize(w.dense_post_norm, beside, n_rows, beside);
  Normalize(w.experts_norm, x, n_rows, expert_in);
  const auto root = static_cast<float>(1 / std::sqrt(static_cast<double>(d)));
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    kernels_.rms_norm(x + r * d, w.router_scale.data(), config_.norm_eps, d,
                      routed + r * d);
    Scale(root, d, routed + r * d);
  });
  RunExperts(w, routed, expert_in, n_rows, out);
  Normalize(w.experts_post_norm, out, n_rows, out);
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    kernels_.add(beside + r * d, d, out + r * d);
  });
}

// up = f(gate) * up, or up = f(up) for kinds without a gate.
void Mlp::Activate(std::int64_t width, float* gate, float* up) const {
  switch (config_.mlp) {
    case MlpKind::kGatedSilu:
      kernels_.silu_mul(gate, up, width, up);
      break;
    case MlpKind::kGeluErf:
      kernels_.gelu_erf(up, width, up);
      break;
    case MlpKind::kGeluTanh:
      kernels_.gelu_tanh(up, width, up);
      break;
    case MlpKind::kGatedGeluTanh:
      kernels_.gelu_tanh(gate, width, gate);
      for (std::int64_t i = 0; i < width; ++i) up[i] *= gate[i];
      break;
    case MlpKind::kReluSquared:
      kernels_.relu_squared(up, width, up);
      break;
    case MlpKind::kClampedSwiglu:
      // g sigmoid(a g) (u + 1) = silu(a g) * (u + 1) / a.
      for (std::int64_t i = 0; i < width; ++i) {
        gate[i] = kSwigluAlpha * std::min(gate[i], kSwigluLimit);
        up[i] = (std::clamp(up[i], -kSwigluLimit, kSwigluLimit) + 1.0f) /
                kSwigluAlpha;
      }
      kernels_.silu_mul(gate, up, width, up);
      break;
  }
}

void Mlp::RunDense(const MlpWeights& mlp, std::int64_t width, const float* x,
                   int n_rows, float* out) {
  const std::int64_t d = config_.d_model;
  // Gate and up lie side by side, whether they come from one matrix or two.
  const std::int64_t stride = IsGated(config_.mlp) ? 2 * width : width;
  float* gate = hidden_.GetFloats(Size(n_rows, stride));
  float* up = gate + (stride - width);
  const float* pairs = nullptr;
  if (!mlp.gate_up.empty()) {
    float* both =
        mlp.interleaved ? interleaved_.GetFloats(Size(n_rows, stride)) : gate;
    if (mlp.interleaved) pairs = both;
    linears_.Run(x, d, n_rows,
                 std::array<LinearCall, 1>{{{&mlp.gate_up, both, stride}}});
  } else if (IsGated(config_.mlp)) {
    linears_.Run(x, d, n_rows,
                 std::array<LinearCall, 2>{
                     {{&mlp.gate, gate, stride}, {&mlp.up, up, stride}}});
  } else {
    linears_.Run(x, d, n_rows,
                 std::array<LinearCall, 1>{{{&mlp.up, up, stride}}});
  }
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    float* row_gate = gate + r * stride;
    float* row_up = up + r * stride;
    if (pairs != nullptr) {
      for (std::int64_t i = 0; i < width; ++i) {
        row_gate[i] = pairs[r * stride + 2 * i];
        row_up[i] = pairs[r * stride + 2 * i + 1];
      }
    }
    if (IsGated(config_.mlp)) {
      Scale(config_.part_scales.mlp_gate, width, row_gate);
    }
    Activate(width, row_gate, row_up);
  });
  linears_.Run(up, stride, n_rows,
               std::array<LinearCall, 1>{{{&mlp.down, out, d}}});
  Scale(config_.part_scales.mlp_down, n_rows * d, out);
}

void Mlp::Route(const LayerWeights& layer, const float* x, int n_rows) {
  const int n_experts = config_.n_experts;
  const int n_used = config_.n_experts_used;
  float* scores = scores_.GetFloats(Size(n_rows, n_experts));
  linears_.Run(x, config_.d_model, n_rows,
               std::array<LinearCall, 1>{{{&layer.router, scores, n_experts}}});
  for (auto& rows : rows_of_) rows.clear();
  std::vector<int> chosen(static_cast<std::size_t>(n_used));
  std::vector<float> weights(chosen.size());
  for (int r = 0; r < n_rows; ++r) {
    ChooseExperts(
        router_, scores + std::int64_t{r} * n_experts,
        layer.router_bias.empty() ? nullptr : layer.router_bias.data(),
        chosen.data(), weights.data());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      const auto e = static_cast<std::size_t>(chosen[i]);
      const float scale =
          layer.expert_scales.empty() ? 1.0f : layer.expert_scales[e];
      rows_of_[e].push_back({r, weights[i] * scale});
    }
  }
}

void Mlp::RunExperts(const LayerWeights& layer, const float* routed,
                     const float* x, int n_rows, float* out) {
  const std::int64_t d = config_.d_model;
  Route(layer, routed, n_rows);
  std::fill_n(out, std::int64_t{n_rows} * d, 0.0f);
  for (std::size_t e = 0; e < rows_of_.size(); ++e) {
    const std::vector<Choice>& rows = rows_of_[e];
    if (rows.empty()) continue;
    const auto n = static_cast<int>(rows.size());
    float* gathered = gathered_.GetFloats(Size(n, d));
    float* result = expert_out_.GetFloats(Size(n, d));
    pool_.ParallelFor(n, [&](std::int64_t i, int) {
      std::copy_n(x + rows[static_cast<std::size_t>(i)].row * d, d,
                  gathered + i * d);
    });
    RunDense(layer.experts[e], config_.d_expert, gathered, n, result);
    pool_.ParallelFor(n, [&](std::int64_t i, int) {
      const Choice& choice = rows[static_cast<std::size_t>(i)];
      float* sum = out + choice.row * d;
      for (std::int64_t k = 0; k < d; ++k) {
        sum[k] += choice.weight * result[i * d + k];
      }
    });
  }
  if (config_.d_shared_expert > 0) AddSharedExpert(layer, x, n_rows, out);
}

// Behind the others, so that a row's sum has one order.
void Mlp::AddSharedExpert(const LayerWeights& layer, const float* x, int n_rows,
                          float* out) {
  const std::int64_t d = config_.d_model;
  float* result = expert_out_.GetFloats(Size(n_rows, d));
  RunDense(layer.shared_expert, config_.d_shared_expert, x, n_rows, result);
  if (layer.shared_expert_gate.empty()) {
    pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
      kernels_.add(result + r * d, d, out + r * d);
    });
    return;
  }
  float* gates = scores_.GetFloats(Size(n_rows, 1));
  linears_.Run(
      x, d, n_rows,
      std::array<LinearCall, 1>{{{&layer.shared_expert_gate, gates, 1}}});
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    // In double, as the router's weights.
    const auto weight =
        static_cast<float>(1 / (1 + std::exp(-double{gates[r]})));
    float* row = out + r * d;
    for (std::int64_t k = 0; k < d; ++k) row[k] += weight * result[r * d + k];
  });
}

}  // namespace hearth
