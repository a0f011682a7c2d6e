// y = W x of weights in blocks for a few rows, as a decode step has them: bound
// by reading the weights once.
//
// A block of threads has up to kFewOutputs / kRows outputs. Threads take groups
// of them in memory order, which is one contiguous piece, and leave each
// group's terms in shared memory; then one thread an output and row adds them
// in the CPU's order, groups rising.
#pragma once

#include "cuda/kernels/matrix.h"

namespace hearth::gpu {

inline constexpr int kCallsMax = 3;
inline constexpr int kFewThreads = 256;
inline constexpr int kFewOutputs = 16;  // times rows, of a block
inline constexpr int kFewGroups = 128;  // groups of an output at a time

// Up to three matrices that read the same rows.
struct MatmulCall {
  Matrix w;
  const float* bias;  // [n_out], or null
  float* y;           // [n_rows], rows y_stride floats apart
  std::int64_t y_stride;
};
struct MatmulArgs {
  int n_calls;
  int n_rows;
  int outputs;          // of a block of threads
  PackedRows x;         // of blocks
  const float* floats;  // of floats
  std::int64_t floats_stride;
  MatmulCall calls[kCallsMax];
  // The first block of threads (block.x) of each call.
  unsigned first_block[kCallsMax];
};

HEARTH_GPU int Least2(int a, int b) { return a < b ? a : b; }

HEARTH_GPU int CallOf(const MatmulArgs& a, unsigned block) {
  int call = 0;
  while (call + 1 < a.n_calls && block >= a.first_block[call + 1]) ++call;
  return call;
}

// A group as it comes from memory.
struct FewFetch {
  std::uint32_t codes[8];
  GroupScales scales;
};
template <class F>
HEARTH_GPU FewFetch FetchFew(const Matrix& w, std::int64_t group) {
  FewFetch f;
  LoadGroup<F::kCodesKind>(w, group, f.codes);
  f.scales = ScalesOf<F::kHasHalves, F::kHasMinimums>(w, group);
  return f;
}

// The terms of one group with every row; out: of the first row.
template <class F, int kRows>
HEARTH_GPU void FewGroup(const Matrix& w, const PackedRows& x, int first_row,
                         int n_rows, std::int64_t g, const FewFetch& f,
                         Term* out, int out_stride) {
  const std::int64_t n_groups = w.n_in / 32;
  HEARTH_GPU_UNROLL
  for (int r = 0; r < kRows; ++r) {
    if (r >= n_rows) break;
    const std::int64_t row = first_row + r;
    const std::uint8_t* in = x.codes + row * w.n_in + g * 32;
    const Words4 low = LoadWords4(in), high = LoadWords4(in + 16);
    const PackedScale scale = x.scales[row * n_groups + g];
    int dots[2] = {0, 0};
    HEARTH_GPU_UNROLL
    for (int i = 0; i < 4; ++i) {
      dots[0] = Dot4(f.codes[i], low.w[i], dots[0]);
      dots[1] = Dot4(f.codes[4 + i], high.w[i], dots[1]);
    }
    dots[0] -= w.bias * scale.sums[0];
    dots[1] -= w.bias * scale.sums[1];
    Term terms[F::kTerms];
    TermsOf<F>(dots, f.scales, scale, terms);
    HEARTH_GPU_UNROLL
    for (int i = 0; i < F::kTerms; ++i) out[r * out_stride + i] = terms[i];
  }
}

// The terms of groups [first, first + n) of n_outputs outputs. Several groups
// of a thread are on their way at once.
template <class F, int kRows>
HEARTH_GPU void FewTerms(const Block& block, const MatmulArgs& a,
                         const Matrix& w, std::int64_t first_output,
                         int n_outputs, int first_row, int n_rows,
                         std::int64_t first, int n, Term* terms, int run) {
  constexpr int kAtOnce = kRows == 1 ? 4 : 2;
  const std::int64_t n_groups = w.n_in / 32;
  const int total = n_outputs * n;
  const bool whole = n == kFewGroups;  // the usual case divides by a constant
  block.ForThreads([&](int thread) {
    for (int at = thread; at < total; at += kAtOnce * kFewThreads) {
      FewFetch fetched[kAtOnce];
      int output[kAtOnce], g[kAtOnce];
      HEARTH_GPU_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        const int i = Least2(at + j * kFewThreads, total - 1);
        output[j] = whole ? i / kFewGroups : i / n;
        g[j] = i - output[j] * n;
        fetched[j] = FetchFew<F>(
            w, (first_output + output[j]) * n_groups + first + g[j]);
      }
      HEARTH_GPU_UNROLL
      for (int j = 0; j < kAtOnce; ++j) {
        if (at + j * kFewThreads >= total) break;
        FewGroup<F, kRows>(w, a.x, first_row, n_rows, first + g[j], fetched[j],
                           terms + output[j] * kRows * run + g[j] * F::kTerms,
                           run);
      }
    }
  });
}

template <class F, int kRows>
HEARTH_GPU void FewRows(const Block& block, const MatmulArgs& a,
                        const MatmulCall& call, std::int64_t first_output,
                        int first_row) {
  constexpr int kRun = kFewGroups * F::kTerms + 1;  // one more: no bank twice
  const Matrix& w = call.w;
  const std::int64_t n_groups = w.n_in / 32;
  const int n_rows =
      a.n_rows - first_row < kRows ? a.n_rows - first_row : kRows;
  const std::int64_t left = w.n_out - first_output;
  const int n_outputs = left < a.outputs ? static_cast<int>(left) : a.outputs;
  Term* terms = reinterpret_cast<Term*>(block.shared());
  PerThread<float> sum(block);
  block.ForThreads([&](int thread) { sum(thread) = 0.0f; });
  for (std::int64_t first = 0; first < n_groups; first += kFewGroups) {
    const int n = n_groups - first < kFewGroups
                      ? static_cast<int>(n_groups - first)
                      : kFewGroups;
    FewTerms<F, kRows>(block, a, w, first_output, n_outputs, first_row, n_rows,
                       first, n, terms, kRun);
    block.Sync();
    block.ForThreads([&](int thread) {
      if (thread >= n_outputs * kRows || thread % kRows >= n_rows) return;
      const Term* mine = terms + thread * kRun;
      float acc = sum(thread);
      HEARTH_GPU_UNROLL_BY(8)
      for (int i = 0; i < n * F::kTerms; ++i) {
        acc = Fma(mine[i].a, mine[i].b, acc);
      }
      sum(thread) = acc;
    });
    block.Sync();
  }
  block.ForThreads([&](int thread) {
    if (thread >= n_outputs * kRows || thread % kRows >= n_rows) return;
    const std::int64_t output = first_output + thread / kRows;
    const float acc = sum(thread);
    call.y[(first_row + thread % kRows) * call.y_stride + output] =
        call.bias != nullptr ? acc + call.bias[output] : acc;
  });
}

// grid: (outputs of all calls / a.outputs, rows / kRows), each call rounded up.
// shared: FewSharedBytes().
template <int kRows>
HEARTH_GPU void MatmulFew(const Block& block, const MatmulArgs& a) {
  block.Await();
  const int index = CallOf(a, block.x());
  const MatmulCall& call = a.calls[index];
  const std::int64_t first_output =
      std::int64_t{block.x() - a.first_block[index]} * a.outputs;
  const int first_row = static_cast<int>(block.y()) * kRows;
  WithForm(call.w, [&](auto form) {
    FewRows<decltype(form), kRows>(block, a, call, first_output, first_row);
  });
}

constexpr int FewSharedBytes(int n_terms) {
  return kFewOutputs * (kFewGroups * n_terms + 1) *
         static_cast<int>(sizeof(Term));
}

}  // namespace hearth::gpu
