#include "model/cuda/device_mlp.h"

#include <array>

#include "cuda/kernels/rows.h"

namespace hearth {
namespace {

gpu::Activation KindOf(MlpKind kind) {
  switch (kind) {
    case MlpKind::kGeluErf:
      return gpu::Activation::kGeluErf;
    case MlpKind::kGeluTanh:
      return gpu::Activation::kGeluTanh;
    case MlpKind::kGatedGeluTanh:
      return gpu::Activation::kGatedGeluTanh;
    case MlpKind::kClampedSwiglu:
      return gpu::Activation::kClampedSwiglu;
    case MlpKind::kReluSquared:  // CheckDeviceRuns refuses it
    case MlpKind::kGatedSilu:
      break;
  }
  return gpu::Activation::kGatedSilu;
}

}  // namespace

Result<void> DeviceMlp::Reserve(int n_rows) {
  const std::uint64_t bytes = static_cast<std::uint64_t>(n_rows) * 2 *
                              static_cast<std::uint64_t>(config_.d_mlp) *
                              sizeof(float);
  HEARTH_TRY(hidden_.Reserve(bytes));
  return pairs_.Reserve(bytes);
}

void DeviceMlp::Run(const MlpWeights& mlp, const float* x, int n_rows,
                    float* out) {
  const std::int64_t width = config_.d_mlp, d = config_.d_model;
  const bool gated = IsGated(config_.mlp);
  const std::int64_t stride = gated ? 2 * width : width;
  auto* gate = hidden_.As<float>();
  float* up = gate + (stride - width);
  const bool pairs = !mlp.gate_up.empty() && mlp.interleaved;
  float* both = pairs ? pairs_.As<float>() : gate;
  const auto run = [&](std::span<const DeviceLinearCall> calls) {
    linears_.Run(x, d, n_rows, calls);
  };
  if (!mlp.gate_up.empty()) {
    run(std::array<DeviceLinearCall, 1>{{{&mlp.gate_up, both, stride}}});
  } else if (gated) {
    run(std::array<DeviceLinearCall, 2>{
        {{&mlp.gate, gate, stride}, {&mlp.up, up, stride}}});
  } else {
    run(std::array<DeviceLinearCall, 1>{{{&mlp.up, up, stride}}});
  }
  gpu::ActivateArgs args{.kind = KindOf(config_.mlp),
                         .gate = gated ? both : nullptr,
                         .up = up,
                         .gate_stride = stride,
                         .up_stride = stride,
                         .width = width,
                         .interleaved = pairs,
                         .codes = nullptr,
                         .scales = nullptr};
  if (IsBlockQuantised(mlp.down.w.dtype)) {
    const gpu::PackedRoom room = linears_.PackFor(up);
    args.codes = room.codes;
    args.scales = room.scales;
  }
  device_.Run(gpu::Kernel::kActivate,
              {static_cast<unsigned>((width + gpu::kElementThreads - 1) /
                                     gpu::kElementThreads),
               static_cast<unsigned>(n_rows)},
              args, gpu::kPackSharedBytes);
  linears_.Run(up, stride, n_rows,
               std::array<DeviceLinearCall, 1>{{{&mlp.down, out, d}}});
}

}  // namespace hearth
