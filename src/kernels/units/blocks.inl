// The translation unit of matrix products with weights in blocks.

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
#include "kernels/generic/pack.inl"
#include "kernels/generic/prefetch.inl"
#include "kernels/generic/block_formats.inl"
#include "kernels/generic/k_formats.inl"
#include "kernels/generic/matmul_output.inl"
#include "kernels/generic/matmul_int8.inl"
// clang-format on
}  // namespace

void MatmulBlocks(const WeightMatrix& w, const std::byte* packed, int n_rows,
                  std::int64_t n_begin, std::int64_t n_end, const float* bias,
                  float* y, std::int64_t y_stride, std::byte* scratch) {
  const MatmulOutput out{bias, y, y_stride};
  WithBlocks(w.dtype, [&](auto blocks) {
    MatmulInt8<decltype(blocks)>(w, packed, n_rows, n_begin, n_end, out,
                                 scratch);
  });
}

std::size_t BlocksScratchBytes(const WeightMatrix& w, int n_rows) {
  return Int8ScratchBytes(w.dtype, w.n_in, n_rows);
}

std::size_t PackedRowBytes(DType weight, std::int64_t n_in) {
  return RowBytes(weight, n_in);
}

void PackRow(DType weight, const float* x, std::int64_t n_in,
             std::byte* packed) {
  PackOneRow(weight, x, n_in, packed);
}

}  // namespace HEARTH_ISA
}  // namespace hearth
HEARTH_ISA_END
