// The translation unit of matrix products with weights that are read as floats.

HEARTH_ISA_BEGIN
namespace hearth {
namespace HEARTH_ISA {

#include "kernels/units/doors.inl"

namespace {
// Each builds on the ones before it.
// clang-format off
#include HEARTH_ISA_VECTORS
#include "kernels/generic/vectors.inl"
#include "kernels/generic/formats.inl"
#include "kernels/generic/matmul_output.inl"
#include "kernels/generic/matmul_float.inl"
#include "kernels/generic/matmul_columns.inl"
// clang-format on

using Bf16Run = PlainRun<Bf16Format>;
using F16Run = PlainRun<F16Format>;
using F32Run = PlainRun<F32Format>;

// f(run) for the weights as they lie.
template <class F>
void WithRun(const WeightMatrix& w, const F& f) {
  switch (w.dtype) {
    case DType::kF16:
      return f(RunOf<F16Run>(w));
    case DType::kBF16:
      return f(RunOf<Bf16Run>(w));
    case DType::kTgInt4:
      return f(RunOf<TgInt4Run>(w));
    default:
      return f(RunOf<F32Run>(w));
  }
}

}  // namespace

void MatmulFloats(const WeightMatrix& w, const std::byte* packed, int n_rows,
                  std::int64_t n_begin, std::int64_t n_end, const float* bias,
                  float* y, std::int64_t y_stride, std::byte* scratch) {
  const MatmulOutput out{bias, y, y_stride};
  WithRun(w, [&](auto run) {
    using Run = decltype(run);
    if (w.layout == WeightLayout::kInOut) {
      MatmulColumns<Run>(w, packed, n_rows, n_begin, n_end, out);
    } else {
      MatmulFloat<Run>(w, packed, n_rows, n_begin, n_end, out, scratch);
    }
  });
}

std::size_t FloatsScratchBytes(const WeightMatrix& w, int n_rows) {
  return w.layout == WeightLayout::kOutIn ? FloatScratchBytes(n_rows) : 0;
}

void DequantizeFloats(const WeightMatrix& w, std::int64_t row, float* out) {
  WithRun(w, [&](auto all) {
    const auto run = all.From(row * w.n_in);
    ForEachVector(w.n_in, [&](std::int64_t i, int count) {
      StoreUpTo(out + i, count == kLanes ? run.At(i) : run.AtN(i, count),
                count);
    });
  });
}

}  // namespace HEARTH_ISA
}  // namespace hearth
HEARTH_ISA_END
