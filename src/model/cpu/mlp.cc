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
      linears_(linears),
      pool_(pool),
      kernels_(ActiveKernels()),
      rows_of_(static_cast<std::size_t>(config.n_experts)) {}

std::int64_t Mlp::HiddenWidth() const {
  const int width = config_.n_experts > 0
                        ? std::max(config_.d_expert, config_.d_shared_expert)
                        : config_.d_mlp;
  return IsGated(config_.mlp) ? 2 * std::int64_t{width} : width;
}

Result<void> Mlp::Reserve(int n_rows) {
  const std::size_t hidden = Size(n_rows, HiddenWidth());
  HEARTH_TRY(hidden_.ReserveFloats(hidden));
  HEARTH_TRY(interleaved_.ReserveFloats(IsGated(config_.mlp) ? hidden : 0));
  if (config_.n_experts == 0) return {};
  HEARTH_TRY(scores_.ReserveFloats(Size(n_rows, config_.n_experts)));
  HEARTH_TRY(gathered_.ReserveFloats(Size(n_rows, config_.d_model)));
  return expert_out_.ReserveFloats(Size(n_rows, config_.d_model));
}

void Mlp::Run(const LayerWeights& layer, const float* x, int n_rows,
              float* out) {
  if (config_.n_experts > 0) {
    RunExperts(layer, x, n_rows, out);
  } else {
    RunDense(layer.mlp, config_.d_mlp, x, n_rows, out);
  }
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
    Activate(width, row_gate, row_up);
  });
  linears_.Run(up, stride, n_rows,
               std::array<LinearCall, 1>{{{&mlp.down, out, d}}});
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
    ChooseExperts(scores + std::int64_t{r} * n_experts, n_experts, n_used,
                  config_.router, chosen.data(), weights.data());
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      rows_of_[static_cast<std::size_t>(chosen[i])].push_back({r, weights[i]});
    }
  }
}

void Mlp::RunExperts(const LayerWeights& layer, const float* x, int n_rows,
                     float* out) {
  const std::int64_t d = config_.d_model;
  Route(layer, x, n_rows);
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

void ChooseExperts(const float* scores, int n_experts, int n_used,
                   RouterKind kind, int* chosen, float* weights) {
  std::vector<int> order(static_cast<std::size_t>(n_experts));
  for (int e = 0; e < n_experts; ++e) order[static_cast<std::size_t>(e)] = e;
  // NaN scores would break the order's rules; they come last here.
  const auto key = [scores](int e) {
    return std::isnan(scores[e]) ? -INFINITY : scores[e];
  };
  std::partial_sort(
      order.begin(), order.begin() + n_used, order.end(),
      [&](int a, int b) { return key(a) != key(b) ? key(a) > key(b) : a < b; });
  const double largest = scores[order[0]];
  // exp in double, so that the rounded weight is the same in every C library.
  double total = 0;
  if (kind == RouterKind::kSoftmaxOfAll) {
    for (int e = 0; e < n_experts; ++e) total += std::exp(scores[e] - largest);
  } else {
    for (int i = 0; i < n_used; ++i) {
      total += std::exp(scores[order[static_cast<std::size_t>(i)]] - largest);
    }
  }
  std::sort(order.begin(), order.begin() + n_used);
  for (int i = 0; i < n_used; ++i) {
    chosen[i] = order[static_cast<std::size_t>(i)];
    weights[i] =
        static_cast<float>(std::exp(scores[chosen[i]] - largest) / total);
  }
}

}  // namespace hearth
