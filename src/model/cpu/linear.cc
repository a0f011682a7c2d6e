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
// Layers whose adapters' first matrices are multiplied with together.
constexpr std::size_t kCallsTogether = 4;
constexpr std::size_t kLineBytes = 64;

// Outputs of an adapter's second matrix per task.
std::int64_t AddedColumns(int n_rows) { return n_rows <= kFewRows ? 512 : 64; }

// Columns per task of matrices that share an input, a multiple of
// kMatmulColumns.
std::int64_t TaskColumns(std::int64_t n_columns, std::uint64_t bytes,
                         int n_rows, int n_threads) {
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

LinearRunner::LinearRunner(ThreadPool& pool, LinearInputs* inputs)
    : pool_(pool),
      kernels_(ActiveKernels()),
      inputs_(inputs),
      scratch_(static_cast<std::size_t>(pool.n_threads())),
      added_(static_cast<std::size_t>(pool.n_threads())) {}

Result<void> LinearRunner::Reserve(std::span<const WeightMatrix> matrices,
                                   int n_rows, const LowRanks& low_ranks) {
  std::size_t packed = 0, scratch = 0;
  for (const WeightMatrix& w : matrices) {
    packed = std::max(packed, kernels_.packed_row_bytes(w.dtype, w.n_in));
    scratch = std::max(scratch, kernels_.matmul_scratch_bytes(w, n_rows));
  }
  const auto n = static_cast<std::size_t>(n_rows);
  HEARTH_TRY(packed_.Reserve(packed * n));
  for (AlignedBuffer& buffer : scratch_) HEARTH_TRY(buffer.Reserve(scratch));
  if (low_ranks.n == 0) return {};
  const std::size_t ranks = static_cast<std::size_t>(low_ranks.ranks);
  HEARTH_TRY(inner_.ReserveFloats(n * kCallsTogether * ranks));
  // Packed rows are float rows that end with a line.
  HEARTH_TRY(packed_inner_.Reserve(
      n * kCallsTogether *
      (ranks * sizeof(float) +
       static_cast<std::size_t>(low_ranks.n) * kLineBytes)));
  for (AlignedBuffer& buffer : added_) {
    HEARTH_TRY(buffer.ReserveFloats(
        n * static_cast<std::size_t>(AddedColumns(n_rows))));
  }
  return {};
}

void LinearRunner::Run(const float* x, std::int64_t x_stride, int n_rows,
                       std::span<const LinearCall> calls) {
  for (const LinearCall& call : calls) {
    if (inputs_ == nullptr) break;
    inputs_->Add(*call.linear, x, x_stride, n_rows);
  }
  products_.clear();
  int n_adapters = 0;
  for (const LinearCall& call : calls) {
    const Linear& linear = *call.linear;
    products_.push_back({&linear.w,
                         linear.bias.empty() ? nullptr : linear.bias.data(),
                         call.y, call.y_stride});
    if (!linear.low_ranks.empty()) {
      n_adapters = std::max(n_adapters, linear.low_ranks.back().adapter + 1);
    }
  }
  Multiply(x, x_stride, n_rows, products_);
  for (int adapter = 0; adapter < n_adapters; ++adapter) {
    for (std::size_t i = 0; i < calls.size(); i += kCallsTogether) {
      AddAdapter(adapter, x, x_stride, n_rows,
                 calls.subspan(i, std::min(kCallsTogether, calls.size() - i)));
    }
  }
}

void LinearRunner::Multiply(const float* x, std::int64_t x_stride, int n_rows,
                            std::span<const Product> products) {
  // Neighbours of one weight format share one prepared input.
  std::size_t begin = 0;
  while (begin < products.size()) {
    const WeightMatrix& first = *products[begin].w;
    std::size_t end = begin + 1;
    while (end < products.size() && products[end].w->dtype == first.dtype) {
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
    RunPacked(n_rows, products.subspan(begin, end - begin));
    begin = end;
  }
}

void LinearRunner::RunPacked(int n_rows, std::span<const Product> products) {
  std::int64_t n_columns = 0;
  std::uint64_t bytes = 0;
  for (const Product& product : products) {
    const WeightMatrix& w = *product.w;
    n_columns += w.n_out;
    bytes += BytesOf(w.dtype, static_cast<std::uint64_t>(w.n_out * w.n_in))
                 .value_or(0);
  }
  const std::int64_t per_task =
      TaskColumns(n_columns, bytes, n_rows, pool_.n_used());
  std::int64_t n_tasks = 0;
  for (const Product& product : products) {
    n_tasks += (product.w->n_out + per_task - 1) / per_task;
  }
  const std::byte* packed = packed_.Get(0);
  pool_.ParallelFor(n_tasks, [&](std::int64_t task, int thread) {
    for (const Product& product : products) {
      const WeightMatrix& w = *product.w;
      const std::int64_t n_here = (w.n_out + per_task - 1) / per_task;
      if (task >= n_here) {
        task -= n_here;
        continue;
      }
      std::byte* scratch = scratch_[static_cast<std::size_t>(thread)].Get(
          kernels_.matmul_scratch_bytes(w, n_rows));
      kernels_.matmul(w, packed, n_rows, task * per_task,
                      std::min(w.n_out, (task + 1) * per_task), product.bias,
                      product.y, product.y_stride, scratch);
      return;
    }
  });
}

void LinearRunner::AddAdapter(int adapter, const float* x,
                              std::int64_t x_stride, int n_rows,
                              std::span<const LinearCall> calls) {
  additions_.clear();
  products_.clear();
  std::int64_t n_inner = 0;
  std::size_t packed = 0;
  for (const LinearCall& call : calls) {
    for (const LowRank& low_rank : call.linear->low_ranks) {
      if (low_rank.adapter != adapter) continue;
      additions_.push_back({&low_rank, n_inner, packed,
                            call.y + low_rank.first_row, call.y_stride});
      n_inner += low_rank.down.n_out;
      packed += kernels_.packed_row_bytes(low_rank.up.dtype, low_rank.up.n_in) *
                static_cast<std::size_t>(n_rows);
    }
  }
  if (additions_.empty()) return;
  float* inner = inner_.GetFloats(static_cast<std::size_t>(n_rows * n_inner));
  for (const Addition& addition : additions_) {
    products_.push_back(
        {&addition.low_rank->down, nullptr, inner + addition.inner, n_inner});
  }
  Multiply(x, x_stride, n_rows, products_);
  PackInner(n_rows, n_inner);
  AddProducts(n_rows);
}

void LinearRunner::PackInner(int n_rows, std::int64_t n_inner) {
  const auto pack = [&](std::int64_t r, int) {
    for (const Addition& addition : additions_) {
      const WeightMatrix& up = addition.low_rank->up;
      const std::size_t row_bytes =
          kernels_.packed_row_bytes(up.dtype, up.n_in);
      kernels_.pack_row(
          up.dtype, inner_.GetFloats(0) + r * n_inner + addition.inner, up.n_in,
          packed_inner_.Get(0) + addition.packed +
              static_cast<std::size_t>(r) * row_bytes);
    }
  };
  if (n_rows > kFewRows) {
    pool_.ParallelFor(n_rows, pack);
  } else {
    // Less work than handing it out.
    for (int r = 0; r < n_rows; ++r) pack(r, 0);
  }
}

// Adapters of one number change no output twice: the order is fixed.
void LinearRunner::AddProducts(int n_rows) {
  const std::int64_t per_task = AddedColumns(n_rows);
  std::int64_t n_tasks = 0;
  for (const Addition& addition : additions_) {
    n_tasks += (addition.low_rank->up.n_out + per_task - 1) / per_task;
  }
  pool_.ParallelFor(n_tasks, [&](std::int64_t task, int thread) {
    for (const Addition& addition : additions_) {
      const std::int64_t n_here =
          (addition.low_rank->up.n_out + per_task - 1) / per_task;
      if (task < n_here) {
        return AddRows(addition, task * per_task, per_task, n_rows,
                       static_cast<std::size_t>(thread));
      }
      task -= n_here;
    }
  });
}

void LinearRunner::AddRows(const Addition& addition, std::int64_t first,
                           std::int64_t n, int n_rows, std::size_t thread) {
  const float factor = addition.low_rank->factor;
  WeightMatrix up = addition.low_rank->up;
  up.data += *BytesOf(up.dtype, static_cast<std::uint64_t>(first * up.n_in));
  up.n_out = std::min(n, up.n_out - first);
  float* product =
      added_[thread].GetFloats(static_cast<std::size_t>(n_rows * n));
  std::byte* scratch =
      scratch_[thread].Get(kernels_.matmul_scratch_bytes(up, n_rows));
  kernels_.matmul(up, packed_inner_.Get(0) + addition.packed, n_rows, 0,
                  up.n_out, nullptr, product, n, scratch);
  for (int r = 0; r < n_rows; ++r) {
    float* y = addition.y + r * addition.y_stride + first;
    const float* from = product + r * n;
    for (std::int64_t i = 0; i < up.n_out; ++i) y[i] += factor * from[i];
  }
}

}  // namespace hearth
