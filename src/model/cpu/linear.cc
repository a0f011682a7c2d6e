#include "model/cpu/linear.h"

#include <algorithm>

namespace hearth {
namespace {

// Columns per task: small enough to balance, large enough to amortise the
// start of a task and, in prefill, the unpacking of a panel.
constexpr std::int64_t kColumnsMin = 32;
constexpr std::int64_t kColumnsMax = 512;
constexpr int kTasksPerThread = 6;
// A step of few rows reads a task's weights and is done: bytes of them that are
// much more than a task's start costs, and little to wait for at the end.
constexpr int kFewRows = 8;
constexpr std::uint64_t kStreamedTaskBytes = 64 << 10;

// Columns per task of matrices that share an input, a multiple of
// kMatmulColumns.
std::int64_t TaskColumns(std::span<const LinearCall> calls, int n_rows,
                         int n_threads) {
  std::int64_t n_columns = 0;
  std::uint64_t bytes = 0;
  for (const LinearCall& call : calls) {
    const WeightMatrix& w = call.linear->w;
    n_columns += w.n_out;
    bytes += BytesOf(w.dtype, static_cast<std::uint64_t>(w.n_out * w.n_in))
                 .value_or(0);
  }
  if (n_rows <= kFewRows) {
    const std::uint64_t column_bytes = std::max<std::uint64_t>(
        1, bytes / static_cast<std::uint64_t>(n_columns));
    const auto columns =
        static_cast<std::int64_t>(kStreamedTaskBytes / column_bytes);
    return std::clamp(columns / kMatmulColumns * kMatmulColumns, kColumnsMin,
                      kColumnsMax);
  }
  const std::int64_t columns = n_columns / (n_threads * kTasksPerThread);
  return std::clamp(columns / kMatmulColumns * kMatmulColumns, kColumnsMin,
                    kColumnsMax);
}

}  // namespace

LinearRunner::LinearRunner(ThreadPool& pool)
    : pool_(pool),
      kernels_(ActiveKernels()),
      scratch_(static_cast<std::size_t>(pool.n_threads())) {}

Result<void> LinearRunner::Reserve(std::span<const WeightMatrix> matrices,
                                   int n_rows) {
  std::size_t packed = 0, scratch = 0;
  for (const WeightMatrix& w : matrices) {
    packed = std::max(packed, kernels_.packed_row_bytes(w.dtype, w.n_in));
    scratch = std::max(scratch, kernels_.matmul_scratch_bytes(w, n_rows));
  }
  HEARTH_TRY(packed_.Reserve(packed * static_cast<std::size_t>(n_rows)));
  for (AlignedBuffer& buffer : scratch_) HEARTH_TRY(buffer.Reserve(scratch));
  return {};
}

void LinearRunner::Run(const float* x, std::int64_t x_stride, int n_rows,
                       std::span<const LinearCall> calls) {
  // Neighbours of one weight format share one prepared input.
  std::size_t begin = 0;
  while (begin < calls.size()) {
    const WeightMatrix& first = calls[begin].linear->w;
    std::size_t end = begin + 1;
    while (end < calls.size() && calls[end].linear->w.dtype == first.dtype) {
      ++end;
    }
    const std::size_t row_bytes =
        kernels_.packed_row_bytes(first.dtype, first.n_in);
    std::byte* packed =
        packed_.Get(row_bytes * static_cast<std::size_t>(n_rows));
    pool_.ParallelFor(n_rows, [&](std::int64_t r, int) {
      kernels_.pack_row(first.dtype, x + r * x_stride, first.n_in,
                        packed + static_cast<std::size_t>(r) * row_bytes);
    });
    RunPacked(n_rows, calls.subspan(begin, end - begin));
    begin = end;
  }
}

void LinearRunner::RunPacked(int n_rows, std::span<const LinearCall> calls) {
  const std::int64_t per_task = TaskColumns(calls, n_rows, pool_.n_used());
  std::int64_t n_tasks = 0;
  for (const LinearCall& call : calls) {
    n_tasks += (call.linear->w.n_out + per_task - 1) / per_task;
  }
  const std::byte* packed = packed_.Get(0);
  pool_.ParallelFor(n_tasks, [&](std::int64_t task, int thread) {
    for (const LinearCall& call : calls) {
      const WeightMatrix& w = call.linear->w;
      const std::int64_t n_here = (w.n_out + per_task - 1) / per_task;
      if (task >= n_here) {
        task -= n_here;
        continue;
      }
      std::byte* scratch = scratch_[static_cast<std::size_t>(thread)].Get(
          kernels_.matmul_scratch_bytes(w, n_rows));
      const float* bias =
          call.linear->bias.empty() ? nullptr : call.linear->bias.data();
      kernels_.matmul(w, packed, n_rows, task * per_task,
                      std::min(w.n_out, (task + 1) * per_task), bias, call.y,
                      call.y_stride, scratch);
      return;
    }
  });
}

}  // namespace hearth
