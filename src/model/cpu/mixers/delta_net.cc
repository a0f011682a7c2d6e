#include "model/cpu/mixers/delta_net.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/cpu/mixers/causal_conv.h"
#include "model/state_port.h"

namespace hearth {
namespace {

constexpr float kL2Eps = 1e-6f;

std::size_t Size(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

// In double, so that the rounded results are the same in every C library.
float Sigmoid(float x) {
  return static_cast<float>(1 / (1 + std::exp(-double{x})));
}
float Decay(float x, float bias, float scale) {
  const double a = double{x} + double{bias};
  const double softplus = a > 40 ? a : std::log1p(std::exp(a));
  return static_cast<float>(std::exp(double{scale} * softplus));
}

}  // namespace

DeltaNet::DeltaNet(const ModelConfig& config, LinearRunner& linears,
                   ThreadPool& pool)
    : config_(config),
      shape_(config.delta_net),
      linears_(linears),
      pool_(pool),
      kernels_(ActiveKernels()) {
  if (shape_.key_dim == 0) return;  // the model has no such layer
  const double n = shape_.key_dim;
  const auto size = static_cast<std::size_t>(shape_.key_dim);
  key_norm_.assign(size, static_cast<float>(1 / std::sqrt(n)));
  query_norm_.assign(size, static_cast<float>(1 / n));
}

Result<void> DeltaNet::Reserve(int n_rows) {
  if (shape_.key_dim == 0) return {};
  const std::size_t channels = Size(n_rows, shape_.n_channels());
  const std::size_t values = Size(n_rows, value_width());
  HEARTH_TRY(channels_.ReserveFloats(channels));
  HEARTH_TRY(mixed_.ReserveFloats(channels));
  HEARTH_TRY(gate_.ReserveFloats(values));
  HEARTH_TRY(rates_.ReserveFloats(2 * Size(n_rows, shape_.n_value_heads)));
  HEARTH_TRY(result_.ReserveFloats(values));
  return fused_.ReserveFloats(Size(n_rows, fused_width()));
}

DeltaNet::Buffers DeltaNet::Take(int n_rows) const {
  const std::size_t n_channels = Size(n_rows, shape_.n_channels());
  const std::size_t n_values = Size(n_rows, value_width());
  const std::size_t n_rates = Size(n_rows, shape_.n_value_heads);
  Buffers rows{};
  rows.channels = channels_.GetFloats(n_channels);
  rows.mixed = mixed_.GetFloats(n_channels);
  rows.gate = gate_.GetFloats(n_values);
  rows.decay = rates_.GetFloats(2 * n_rates);
  rows.rate = rows.decay + n_rates;
  rows.result = result_.GetFloats(n_values);
  rows.fused = fused_.GetFloats(Size(n_rows, fused_width()));
  return rows;
}

void DeltaNet::Project(const DeltaNetWeights& w, const float* x, int n_rows,
                       const Buffers& to) {
  const auto run = [&](std::span<const LinearCall> calls) {
    linears_.Run(x, config_.d_model, n_rows, calls);
  };
  if (w.qkv_gate.empty()) {
    run(std::array<LinearCall, 2>{{{&w.qkv, to.channels, shape_.n_channels()},
                                   {&w.gate, to.gate, value_width()}}});
  } else {
    run(std::array<LinearCall, 1>{{{&w.qkv_gate, to.fused, fused_width()}}});
    SplitKeyHeads(n_rows, to);
  }
  const std::int64_t n = shape_.n_value_heads;
  if (w.rate_decay.empty()) {
    run(std::array<LinearCall, 2>{
        {{&w.rate, to.rate, n}, {&w.decay, to.decay, n}}});
  } else {
    run(std::array<LinearCall, 1>{{{&w.rate_decay, to.fused, 2 * n}}});
    SplitRates(n_rows, to);
  }
}

// From [query, key, values, gates] of each key head to [queries | keys |
// values] and gates.
void DeltaNet::SplitKeyHeads(int n_rows, const Buffers& to) {
  const std::int64_t n_keys = shape_.n_key_heads, d = shape_.key_dim;
  const std::int64_t group = value_width() / n_keys;
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    const float* from = to.fused + r * fused_width();
    float* channels = to.channels + r * shape_.n_channels();
    for (std::int64_t h = 0; h < n_keys; ++h) {
      std::copy_n(from, d, channels + h * d);
      std::copy_n(from + d, d, channels + (n_keys + h) * d);
      std::copy_n(from + 2 * d, group, channels + 2 * n_keys * d + h * group);
      std::copy_n(from + 2 * d + group, group,
                  to.gate + r * value_width() + h * group);
      from += 2 * d + 2 * group;
    }
  });
}

void DeltaNet::SplitRates(int n_rows, const Buffers& to) {
  const std::int64_t n = shape_.n_value_heads;
  const std::int64_t group = n / shape_.n_key_heads;
  for (std::int64_t r = 0; r < n_rows; ++r) {
    for (std::int64_t h = 0; h < n; ++h) {
      const float* from =
          to.fused + r * 2 * n + h / group * 2 * group + h % group;
      to.rate[r * n + h] = from[0];
      to.decay[r * n + h] = from[group];
    }
  }
}

void DeltaNet::FinishRates(const DeltaNetWeights& w, int n_rows,
                           const Buffers& rows) {
  const std::int64_t n = shape_.n_value_heads;
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    for (std::int64_t h = 0; h < n; ++h) {
      const auto i = static_cast<std::size_t>(h);
      float& decay = rows.decay[r * n + h];
      decay = Decay(decay, w.decay_bias[i], w.decay_scale[i]);
      rows.rate[r * n + h] = Sigmoid(rows.rate[r * n + h]);
    }
  });
}

void DeltaNet::NormalizeKeys(int n_rows, const Buffers& rows) {
  const std::int64_t d = shape_.key_dim, n = shape_.n_key_heads;
  const float eps = kL2Eps / static_cast<float>(d);
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    float* head = rows.mixed + r * shape_.n_channels();
    kernels_.silu(head, shape_.n_channels(), head);
    for (std::int64_t h = 0; h < 2 * n; ++h, head += d) {
      const auto& norm = h < n ? query_norm_ : key_norm_;
      kernels_.rms_norm(head, norm.data(), eps, d, head);
    }
  });
}

const float* DeltaNet::QueryOf(const Buffers& rows, std::int64_t row,
                               int head) const {
  return rows.mixed + row * shape_.n_channels() +
         std::int64_t{shape_.KeyHeadOf(head)} * shape_.key_dim;
}
const float* DeltaNet::KeyOf(const Buffers& rows, std::int64_t row,
                             int head) const {
  return QueryOf(rows, row, head) +
         std::int64_t{shape_.n_key_heads} * shape_.key_dim;
}
const float* DeltaNet::ValueOf(const Buffers& rows, std::int64_t row,
                               int head) const {
  return rows.mixed + row * shape_.n_channels() +
         2 * std::int64_t{shape_.n_key_heads} * shape_.key_dim +
         std::int64_t{head} * shape_.value_dim;
}

void DeltaNet::Update(const LayerPlan& layer, std::span<const PartRows> parts,
                      const Buffers& rows) {
  const std::int64_t n_heads = shape_.n_value_heads;
  const std::int64_t matrix = std::int64_t{shape_.key_dim} * shape_.value_dim;
  const auto n_tasks = static_cast<std::int64_t>(parts.size()) * n_heads;
  pool_.ParallelFor(n_tasks, [&](std::int64_t i, int) {
    const PartRows& part = parts[static_cast<std::size_t>(i / n_heads)];
    const auto h = static_cast<int>(i % n_heads);
    StatePort& states = *part.kv->host()->states();
    const std::int64_t row = part.first_row;
    kernels_.delta_update(
        states.Read(layer.first_state) + h * matrix,
        states.Write(layer.first_state) + h * matrix, shape_.key_dim,
        shape_.value_dim,
        {.n = part.n_rows,
         .q = QueryOf(rows, row, h),
         .k = KeyOf(rows, row, h),
         .qk_stride = shape_.n_channels(),
         .v = ValueOf(rows, row, h),
         .v_stride = shape_.n_channels(),
         .decay = rows.decay + row * n_heads + h,
         .rate = rows.rate + row * n_heads + h,
         .gate_stride = n_heads,
         .out = rows.result + row * value_width() + h * shape_.value_dim,
         .out_stride = value_width()});
  });
}

void DeltaNet::KeepJournal(const PartRows& part, const Buffers& rows,
                           float* journal) const {
  const std::int64_t n_heads = shape_.n_value_heads;
  for (int t = 0; t < part.n_rows; ++t) {
    const std::int64_t row = part.first_row + t;
    for (int h = 0; h < shape_.n_value_heads; ++h) {
      journal = std::copy_n(KeyOf(rows, row, h), shape_.key_dim, journal);
      journal = std::copy_n(ValueOf(rows, row, h), shape_.value_dim, journal);
      *journal++ = rows.decay[row * n_heads + h];
      *journal++ = rows.rate[row * n_heads + h];
    }
  }
}

void DeltaNet::Run(const LayerPlan& layer, std::span<const PartRows> parts,
                   const float* x, int n_rows, float* out) {
  const DeltaNetWeights& w = layer.weights->delta_net;
  const Buffers rows = Take(n_rows);
  Project(w, x, n_rows, rows);
  for (const PartRows& part : parts) {
    StatePort& states = *part.kv->host()->states();
    const std::int64_t first = part.first_row * shape_.n_channels();
    RunConv(kernels_, pool_, w.conv, config_.conv_taps, shape_.n_channels(),
            {.before = states.Read(layer.first_state + 1),
             .after = states.Write(layer.first_state + 1),
             .journal = states.Journal(layer.first_state + 1),
             .inputs = rows.channels + first,
             .out = rows.mixed + first,
             .n_rows = part.n_rows});
  }
  FinishRates(w, n_rows, rows);
  NormalizeKeys(n_rows, rows);
  Update(layer, parts, rows);
  for (const PartRows& part : parts) {
    float* journal = part.kv->host()->states()->Journal(layer.first_state);
    if (journal != nullptr) KeepJournal(part, rows, journal);
  }
  const std::int64_t n = std::int64_t{n_rows} * shape_.n_value_heads;
  pool_.ParallelFor(n, [&](std::int64_t i, int) {
    float* head = rows.result + i * shape_.value_dim;
    kernels_.rms_norm(head, w.norm.data(), config_.norm_eps, shape_.value_dim,
                      head);
    kernels_.silu_mul(rows.gate + i * shape_.value_dim, head, shape_.value_dim,
                      head);
  });
  linears_.Run(rows.result, value_width(), n_rows,
               std::array<LinearCall, 1>{{{&w.out, out, config_.d_model}}});
}

}  // namespace hearth
