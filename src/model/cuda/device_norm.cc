#include "model/cuda/device_norm.h"

#include "cuda/kernel_table.h"

namespace hearth {

void DeviceNorm::Settle() {
  if (!waits_.has_value()) return;
  const auto n_blocks = static_cast<unsigned>(
      (waits_->n + gpu::kElementThreads - 1) / gpu::kElementThreads);
  device_.Run(gpu::Kernel::kAddTo, {n_blocks}, *waits_);
  waits_.reset();
}

void DeviceNorm::Run(const NormWeights& norm, float* x, float* out, int n_rows,
                     int* first_bad) {
  const std::int64_t d = config_.d_model;
  const bool layer_norm = config_.norm == NormKind::kLayerNorm;
  if (gpu::NormRowSharedBytes(static_cast<int>(d)) >
      gpu::kSharedBytesPerBlock) {
    // A row that does not fit is read piece by piece.
    Settle();
    RunHeads({.x = x,
              .x_row = d,
              .x_run = 0,
              .out = out,
              .out_row = d,
              .out_run = 0,
              .weight = weights_.Of(norm.weight),
              .bias = weights_.Of(norm.bias),
              .n = d,
              .eps = config_.norm_eps,
              .layer_norm = layer_norm},
             n_rows, 1);
    return;
  }
  gpu::NormRowArgs args{.x = x,
                        .delta = nullptr,
                        .delta_scale = config_.residual_scale,
                        .first_bad = first_bad,
                        .layer = 0,
                        .out = out,
                        .weight = weights_.Of(norm.weight),
                        .bias = weights_.Of(norm.bias),
                        .n = static_cast<int>(d),
                        .eps = config_.norm_eps,
                        .layer_norm = layer_norm,
                        .codes = nullptr,
                        .scales = nullptr};
  if (waits_.has_value() && waits_->to == x) {
    args.delta = waits_->from;
    args.layer = waits_->layer;
    waits_.reset();
  }
  if (d % 32 == 0 && x != out) {
    const gpu::PackedRoom room = linears_.PackFor(out);
    args.codes = room.codes;
    args.scales = room.scales;
  }
  device_.Run(gpu::Kernel::kNormRow, {static_cast<unsigned>(n_rows)}, args,
              gpu::NormRowSharedBytes(args.n));
}

void DeviceNorm::RunHeads(const gpu::NormArgs& args, int n_rows,
                          unsigned n_runs) {
  device_.Run(gpu::Kernel::kNorm, {static_cast<unsigned>(n_rows), n_runs}, args,
              gpu::kNormSharedBytes);
}

}  // namespace hearth
