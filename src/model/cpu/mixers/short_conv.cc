#include "model/cpu/mixers/short_conv.h"

#include <array>

#include "model/cpu/mixers/causal_conv.h"
#include "model/state_port.h"

namespace hearth {
namespace {

std::size_t Size(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

}  // namespace

ShortConv::ShortConv(const ModelConfig& config, LinearRunner& linears,
                     ThreadPool& pool)
    : config_(config),
      linears_(linears),
      pool_(pool),
      kernels_(ActiveKernels()) {}

Result<void> ShortConv::Reserve(int n_rows) {
  const std::int64_t d = config_.d_model;
  HEARTH_TRY(projected_.ReserveFloats(Size(n_rows, 3 * d)));
  HEARTH_TRY(inputs_.ReserveFloats(Size(n_rows, d)));
  return mixed_.ReserveFloats(Size(n_rows, d));
}

void ShortConv::Run(const LayerPlan& layer, std::span<const PartRows> parts,
                    const float* x, int n_rows, float* out) {
  const ShortConvWeights& w = layer.weights->short_conv;
  const std::int64_t d = config_.d_model;
  float* projected = projected_.GetFloats(Size(n_rows, 3 * d));
  float* inputs = inputs_.GetFloats(Size(n_rows, d));
  float* mixed = mixed_.GetFloats(Size(n_rows, d));
  linears_.Run(x, d, n_rows,
               std::array<LinearCall, 1>{{{&w.in, projected, 3 * d}}});
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    const float* b = projected + r * 3 * d;
    for (std::int64_t i = 0; i < d; ++i) {
      inputs[r * d + i] = b[i] * b[2 * d + i];
    }
  });
  for (const PartRows& part : parts) {
    StatePort& states = *part.kv->host()->states();
    RunConv(kernels_, pool_, w.conv, config_.conv_taps, d,
            {.before = states.Read(layer.first_state),
             .after = states.Write(layer.first_state),
             .journal = states.Journal(layer.first_state),
             .inputs = inputs + part.first_row * d,
             .out = mixed + part.first_row * d,
             .n_rows = part.n_rows});
  }
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    const float* c = projected + r * 3 * d + d;
    for (std::int64_t i = 0; i < d; ++i) mixed[r * d + i] *= c[i];
  });
  linears_.Run(mixed, d, n_rows, std::array<LinearCall, 1>{{{&w.out, out, d}}});
}

}  // namespace hearth
