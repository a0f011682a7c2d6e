#include "model/cpu/layer_input.h"

#include <array>
#include <cmath>

namespace hearth {
namespace {

std::size_t Size(std::int64_t a, std::int64_t b) {
  return static_cast<std::size_t>(a) * static_cast<std::size_t>(b);
}

float Root(double x) { return static_cast<float>(std::sqrt(x)); }

}  // namespace

LayerInput::LayerInput(const LoadedModel& model, LinearRunner& linears,
                       ThreadPool& pool)
    : model_(model),
      config_(model.config),
      linears_(linears),
      pool_(pool),
      kernels_(ActiveKernels()) {}

Result<void> LayerInput::Reserve(int n_rows) {
  if (width() == 0) return {};
  HEARTH_TRY(gate_.ReserveFloats(Size(n_rows, config_.d_layer_input)));
  HEARTH_TRY(added_.ReserveFloats(Size(n_rows, config_.d_model)));
  return looked_up_.ReserveFloats(Size(n_rows, width()));
}

void LayerInput::Make(std::span<const std::int32_t> tokens, const float* x,
                      float* inputs) {
  const Weights& w = model_.weights;
  const std::int64_t n = config_.d_layer_input;
  const auto n_rows = static_cast<int>(tokens.size());
  linears_.Run(
      x, config_.d_model, n_rows,
      std::array<LinearCall, 1>{{{&w.layer_projection, inputs, width()}}});
  const float made = Root(1.0 / config_.d_model);
  const float stored = Root(static_cast<double>(n));
  const float half = Root(0.5);
  float* table = looked_up_.GetFloats(Size(n_rows, width()));
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    float* row = inputs + r * width();
    float* from = table + r * width();
    kernels_.dequantize_row(w.layer_embedding,
                            tokens[static_cast<std::size_t>(r)], from);
    for (std::int64_t i = 0; i < width(); ++i) row[i] *= made;
    for (std::int64_t l = 0; l < width(); l += n) {
      kernels_.rms_norm(row + l, w.layer_projection_norm.data(),
                        config_.norm_eps, n, row + l);
    }
    for (std::int64_t i = 0; i < width(); ++i) {
      row[i] = (row[i] + from[i] * stored) * half;
    }
  });
}

const float* LayerInput::Run(const LayerPlan& layer, const float* inputs,
                             const float* x, int n_rows) {
  const LayerInputWeights& w = layer.weights->input;
  const std::int64_t n = config_.d_layer_input, d = config_.d_model;
  float* gate = gate_.GetFloats(Size(n_rows, n));
  float* added = added_.GetFloats(Size(n_rows, d));
  linears_.Run(x, d, n_rows, std::array<LinearCall, 1>{{{&w.gate, gate, n}}});
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    float* row = gate + r * n;
    const float* input = inputs + r * width() + layer.index * n;
    kernels_.gelu_tanh(row, n, row);
    for (std::int64_t i = 0; i < n; ++i) row[i] *= input[i];
  });
  linears_.Run(gate, n, n_rows, std::array<LinearCall, 1>{{{&w.up, added, d}}});
  pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
    kernels_.rms_norm(added + r * d, w.norm.weight.data(), config_.norm_eps, d,
                      added + r * d);
  });
  return added;
}

}  // namespace hearth
