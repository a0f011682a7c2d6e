#include "model/cuda/device_linear.h"

#include <algorithm>
#include <vector>

#include "cuda/kernels/matmul_float.h"
#include "cuda/kernels/matmul_many.h"
#include "cuda/kernels/pack.h"

namespace hearth {
namespace {

// More rows go to the tensor cores.
constexpr int kFewRowsMax = 8;

unsigned Pieces(std::int64_t n, std::int64_t piece) {
  return static_cast<unsigned>((n + piece - 1) / piece);
}

// Rows of a block of threads, and the kernel for them.
struct FewKernel {
  int rows;
  gpu::Kernel kernel;
};
FewKernel FewKernelFor(int n_rows) {
  if (n_rows <= 1) return {1, gpu::Kernel::kMatmulFew1};
  if (n_rows <= 2) return {2, gpu::Kernel::kMatmulFew2};
  if (n_rows <= 4) return {4, gpu::Kernel::kMatmulFew4};
  return {8, gpu::Kernel::kMatmulFew8};
}

// The calls as a kernel takes them, `outputs` of them a block of threads.
gpu::MatmulArgs ArgsOf(const DeviceWeights& weights, int n_rows,
                       std::span<const DeviceLinearCall> calls, int outputs,
                       unsigned& n_blocks) {
  gpu::MatmulArgs args = {};
  args.n_rows = n_rows;
  args.outputs = outputs;
  n_blocks = 0;
  for (const DeviceLinearCall& call : calls) {
    const int i = args.n_calls++;
    args.calls[i] = {weights.Of(call.linear->w), weights.Of(call.linear->bias),
                     call.y, call.y_stride};
    args.first_block[i] = n_blocks;
    n_blocks += Pieces(call.linear->w.n_out, outputs);
  }
  return args;
}

int TermsOf(const gpu::Matrix& m) {
  return m.minimums ? (m.halves ? 3 : 2) : 1;
}

}  // namespace

Result<void> DeviceLinear::Reserve(int n_rows, std::int64_t n_in_max) {
  const auto n = static_cast<std::uint64_t>(n_rows * n_in_max);
  packed_ = nullptr;
  HEARTH_TRY(codes_.Reserve(n));
  return scales_.Reserve((n / 32 + 1) * sizeof(gpu::PackedScale));
}

void DeviceLinear::Run(const float* x, std::int64_t x_stride, int n_rows,
                       std::span<const DeviceLinearCall> calls) {
  std::vector<DeviceLinearCall> blocks, floats;
  for (const DeviceLinearCall& call : calls) {
    (IsBlockQuantised(call.linear->w.dtype) ? blocks : floats).push_back(call);
  }
  if (!blocks.empty()) {
    const std::int64_t n_in = blocks[0].linear->w.n_in;
    if (packed_ != x) {
      const gpu::PackArgs args{x, x_stride, n_in, codes_.As<std::uint8_t>(),
                               scales_.As<gpu::PackedScale>()};
      device_.Run(
          gpu::Kernel::kPack,
          {Pieces(n_in, gpu::kPackValues), static_cast<unsigned>(n_rows)}, args,
          gpu::kPackSharedBytes);
    }
    packed_ = nullptr;
    RunBlocks(n_rows, blocks);
  }
  if (!floats.empty()) RunFloats(x, x_stride, n_rows, floats);
}

void DeviceLinear::RunBlocks(int n_rows,
                             std::span<const DeviceLinearCall> calls) {
  unsigned n_blocks = 0;
  if (n_rows > kFewRowsMax) {
    gpu::MatmulArgs many =
        ArgsOf(weights_, n_rows, calls, gpu::kManyOutputs, n_blocks);
    many.x = {codes_.As<std::uint8_t>(), scales_.As<gpu::PackedScale>()};
    device_.Run(gpu::Kernel::kMatmulMany,
                {Pieces(n_rows, gpu::kManyRows), n_blocks}, many,
                gpu::kManySharedBytes);
    return;
  }
  const FewKernel few = FewKernelFor(n_rows);
  // Small matrices are shared out over all processors, too.
  std::int64_t all = 0;
  for (const DeviceLinearCall& call : calls) all += call.linear->w.n_out;
  int outputs = gpu::kFewOutputs / few.rows;
  while (outputs > 4 / few.rows && outputs > 1 &&
         all / outputs < 3 * device_.n_processors()) {
    outputs /= 2;
  }
  gpu::MatmulArgs args = ArgsOf(weights_, n_rows, calls, outputs, n_blocks);
  args.x = {codes_.As<std::uint8_t>(), scales_.As<gpu::PackedScale>()};
  int terms = 1;
  for (int i = 0; i < args.n_calls; ++i) {
    terms = std::max(terms, TermsOf(args.calls[i].w));
  }
  device_.Run(few.kernel, {n_blocks, Pieces(n_rows, few.rows)}, args,
              gpu::FewSharedBytes(terms));
}

void DeviceLinear::RunFloats(const float* x, std::int64_t x_stride, int n_rows,
                             std::span<const DeviceLinearCall> calls) {
  unsigned n_blocks = 0;
  gpu::MatmulArgs args =
      ArgsOf(weights_, n_rows, calls, gpu::kFloatOutputs, n_blocks);
  args.floats = x;
  args.floats_stride = x_stride;
  device_.Run(gpu::Kernel::kMatmulFloat,
              {n_blocks, Pieces(n_rows, gpu::kFloatRows)}, args,
              gpu::kFloatSharedBytes);
}

}  // namespace hearth
