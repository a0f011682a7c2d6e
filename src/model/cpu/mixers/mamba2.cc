#include "model/cpu/mixers/mamba2.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "model/cpu/mixers/causal_conv.h"
#include "model/state_port.h"

namespace hearth {
namespace {

std::size_t Size(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

// In double, so that the rounded result is the same in every C library.
double Softplus(double x) { return x > 40 ? x : std::log1p(std::exp(x)); }

}  // namespace

Mamba2::Mamba2(const ModelConfig& config, LinearRunner& linears,
               ThreadPool& pool)
    : config_(config),
      shape_(config.mamba2),
      linears_(linears),
      pool_(pool),
      kernels_(ActiveKernels()) {}

Result<void> Mamba2::Reserve(int n_rows) {
  if (shape_.n_heads == 0) return {};
  HEARTH_TRY(projected_.ReserveFloats(Size(n_rows, shape_.n_projected())));
  HEARTH_TRY(channels_.ReserveFloats(Size(n_rows, shape_.n_channels())));
  HEARTH_TRY(mixed_.ReserveFloats(Size(n_rows, shape_.n_channels())));
  HEARTH_TRY(inputs_.ReserveFloats(Size(n_rows, shape_.width())));
  HEARTH_TRY(decay_.ReserveFloats(Size(n_rows, shape_.n_heads)));
  HEARTH_TRY(result_.ReserveFloats(Size(n_rows, shape_.width())));
  return added_.ReserveFloats(Size(n_rows, config_.d_model));
}

Mamba2::Buffers Mamba2::Take(int n_rows) const {
  Buffers rows{};
  rows.projected = projected_.GetFloats(Size(n_rows, shape_.n_projected()));
  rows.channels = channels_.GetFloats(Size(n_rows, shape_.n_channels()));
  rows.mixed = mixed_.GetFloats(Size(n_rows, shape_.n_channels()));
  rows.inputs = inputs_.GetFloats(Size(n_rows, shape_.width()));
  rows.decay = decay_.GetFloats(Size(n_rows, shape_.n_heads));
  rows.result = result_.GetFloats(Size(n_rows, shape_.width()));
  rows.added = added_.GetFloats(Size(n_rows, config_.d_model));
  return rows;
}

void Mamba2::Project(const Mamba2Weights& w, const float* x, int n_rows,
                     const Buffers& rows) {
  const std::int64_t n = shape_.n_projected();
  linears_.Run(x, config_.d_model, n_rows,
               std::array<LinearCall, 1>{{{&w.in, rows.projected, n}}});
  const std::int64_t groups = std::int64_t{shape_.n_groups} * shape_.n_state;
  const std::int64_t sizes[] = {shape_.width(), shape_.width(), groups, groups,
                                shape_.n_heads};
  const auto& scales = config_.part_scales.mamba;
  const bool scaled = std::any_of(scales.begin(), scales.end(),
                                  [](float s) { return s != 1.0f; });
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    float* row = rows.projected + r * n;
    if (scaled) {
      float* at = row;
      for (std::size_t part = 0; part < scales.size(); ++part) {
        for (std::int64_t i = 0; i < sizes[part]; ++i) *at++ *= scales[part];
      }
    }
    std::copy_n(row + shape_.width(), shape_.n_channels(),
                rows.channels + r * shape_.n_channels());
  });
}

void Mamba2::Convolve(const LayerPlan& layer, std::span<const PartRows> parts,
                      const Buffers& rows) {
  const std::int64_t n = shape_.n_channels();
  for (const PartRows& part : parts) {
    StatePort& states = *part.kv->host()->states();
    const std::int64_t first = part.first_row * n;
    RunConv(kernels_, pool_, layer.weights->mamba2.conv, config_.conv_taps, n,
            {.before = states.Read(layer.first_state + 1),
             .after = states.Write(layer.first_state + 1),
             .journal = states.Journal(layer.first_state + 1),
             .inputs = rows.channels + first,
             .out = rows.mixed + first,
             .n_rows = part.n_rows});
  }
}

void Mamba2::TakeSteps(const Mamba2Weights& w, int n_rows,
                       const Buffers& rows) {
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    float* mixed = rows.mixed + r * shape_.n_channels();
    kernels_.silu(mixed, shape_.n_channels(), mixed);
    const float* steps =
        rows.projected + (r + 1) * shape_.n_projected() - shape_.n_heads;
    for (int h = 0; h < shape_.n_heads; ++h) {
      const auto i = static_cast<std::size_t>(h);
      const auto step = static_cast<float>(
          Softplus(double{steps[h]} + double{w.step_bias[i]}));
      rows.decay[r * shape_.n_heads + h] =
          static_cast<float>(std::exp(double{w.decay_scale[i]} * double{step}));
      const std::int64_t at = std::int64_t{h} * shape_.head_dim;
      for (std::int64_t d = at; d < at + shape_.head_dim; ++d) {
        rows.inputs[r * shape_.width() + d] = step * mixed[d];
      }
    }
  });
}

const float* Mamba2::WriteOf(const Buffers& rows, std::int64_t row,
                             int head) const {
  return rows.mixed + row * shape_.n_channels() + shape_.width() +
         std::int64_t{shape_.GroupOf(head)} * shape_.n_state;
}
const float* Mamba2::ReadOf(const Buffers& rows, std::int64_t row,
                            int head) const {
  return WriteOf(rows, row, head) +
         std::int64_t{shape_.n_groups} * shape_.n_state;
}

void Mamba2::Update(const LayerPlan& layer, std::span<const PartRows> parts,
                    const Buffers& rows) {
  const std::int64_t n_heads = shape_.n_heads, width = shape_.width();
  const std::int64_t matrix = std::int64_t{shape_.n_state} * shape_.head_dim;
  const auto n_tasks = static_cast<std::int64_t>(parts.size()) * n_heads;
  pool_.ParallelFor(n_tasks, [&](std::int64_t i, int) {
    const PartRows& part = parts[static_cast<std::size_t>(i / n_heads)];
    const auto h = static_cast<int>(i % n_heads);
    StatePort& states = *part.kv->host()->states();
    const std::int64_t row = part.first_row;
    const std::int64_t at = row * width + std::int64_t{h} * shape_.head_dim;
    kernels_.ssm_update(states.Read(layer.first_state) + h * matrix,
                        states.Write(layer.first_state) + h * matrix,
                        shape_.n_state, shape_.head_dim,
                        {.n = part.n_rows,
                         .x = rows.inputs + at,
                         .x_stride = width,
                         .write = WriteOf(rows, row, h),
                         .read = ReadOf(rows, row, h),
                         .state_stride = shape_.n_channels(),
                         .decay = rows.decay + row * n_heads + h,
                         .decay_stride = n_heads,
                         .out = rows.result + at,
                         .out_stride = width});
  });
}

void Mamba2::KeepJournal(const PartRows& part, const Buffers& rows,
                         float* journal) const {
  for (int t = 0; t < part.n_rows; ++t) {
    const std::int64_t row = part.first_row + t;
    for (int h = 0; h < shape_.n_heads; ++h) {
      journal = std::copy_n(WriteOf(rows, row, h), shape_.n_state, journal);
      journal = std::copy_n(rows.inputs + row * shape_.width() +
                                std::int64_t{h} * shape_.head_dim,
                            shape_.head_dim, journal);
      *journal++ = rows.decay[row * shape_.n_heads + h];
    }
  }
}

// The inputs themselves, the gates and the norms.
void Mamba2::Finish(const Mamba2Weights& w, int n_rows, const Buffers& rows) {
  const std::int64_t width = shape_.width();
  const std::int64_t group = width / shape_.n_groups;
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    float* row = rows.result + r * width;
    const float* x = rows.mixed + r * shape_.n_channels();
    for (std::int64_t i = 0; i < width; ++i) {
      row[i] += w.skip[static_cast<std::size_t>(i / shape_.head_dim)] * x[i];
    }
    kernels_.silu_mul(rows.projected + r * shape_.n_projected(), row, width,
                      row);
    for (std::int64_t at = 0; shape_.norm && at < width; at += group) {
      kernels_.rms_norm(row + at, w.norm.data() + at, config_.norm_eps, group,
                        row + at);
    }
  });
}

void Mamba2::Run(const LayerPlan& layer, std::span<const PartRows> parts,
                 const float* x, int n_rows, bool adds, float* out) {
  const Mamba2Weights& w = layer.weights->mamba2;
  const std::int64_t d = config_.d_model;
  const Buffers rows = Take(n_rows);
  Project(w, x, n_rows, rows);
  Convolve(layer, parts, rows);
  TakeSteps(w, n_rows, rows);
  Update(layer, parts, rows);
  for (const PartRows& part : parts) {
    float* journal = part.kv->host()->states()->Journal(layer.first_state);
    if (journal != nullptr) KeepJournal(part, rows, journal);
  }
  Finish(w, n_rows, rows);
  float* to = adds ? rows.added : out;
  linears_.Run(rows.result, shape_.width(), n_rows,
               std::array<LinearCall, 1>{{{&w.out, to, d}}});
  const float scale = config_.part_scales.mamba_out;
  for (std::int64_t i = 0; scale != 1.0f && i < n_rows * d; ++i) to[i] *= scale;
  if (adds) kernels_.add(to, n_rows * d, out);
}

}  // namespace hearth
