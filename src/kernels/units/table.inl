// The translation unit of work on rows, of attention, and of the table that
// puts all functions of one instruction set together.

HEARTH_ISA_BEGIN
namespace hearth {
namespace HEARTH_ISA {

#include "kernels/units/doors.inl"

namespace {
// Each builds on the ones before it.
// clang-format off
#include HEARTH_ISA_VECTORS
#include "kernels/generic/math.inl"
#include "kernels/generic/vectors.inl"
#include "kernels/generic/formats.inl"
#include "kernels/generic/prefetch.inl"
#include "kernels/generic/rows.inl"
#include "kernels/generic/recurrent.inl"
#include "kernels/generic/kv_store.inl"
#include "kernels/generic/kv_seal.inl"
#include "kernels/generic/kv_fold.inl"
#include "kernels/generic/online_softmax.inl"
#include "kernels/generic/attention.inl"
// clang-format on

void Matmul(const WeightMatrix& w, const std::byte* packed, int n_rows,
            std::int64_t n_begin, std::int64_t n_end, const float* bias,
            float* y, std::int64_t y_stride, std::byte* scratch) {
  const auto run = IsBlockQuantised(w.dtype) ? MatmulBlocks : MatmulFloats;
  run(w, packed, n_rows, n_begin, n_end, bias, y, y_stride, scratch);
}

std::size_t MatmulScratchBytes(const WeightMatrix& w, int n_rows) {
  return IsBlockQuantised(w.dtype) ? BlocksScratchBytes(w, n_rows)
                                   : FloatsScratchBytes(w, n_rows);
}

void DequantizeRow(const WeightMatrix& w, std::int64_t row, float* out) {
  if (!IsBlockQuantised(w.dtype)) return DequantizeFloats(w, row, out);
  const DTypeInfo& info = InfoOf(w.dtype);
  DequantizeBlocks(
      w.dtype, w.data + row * w.n_in / info.block_elements * info.block_bytes,
      w.n_in, out);
}

constexpr Kernels MakeTable(std::string_view isa) {
  return {
      .isa = isa,
      .packed_row_bytes = PackedRowBytes,
      .pack_row = PackRow,
      .matmul = Matmul,
      .matmul_scratch_bytes = MatmulScratchBytes,
      .dequantize_row = DequantizeRow,
      .rms_norm = RmsNorm,
      .layer_norm = LayerNorm,
      .add = AddTo,
      .silu_mul = SiluMul,
      .silu = SiluRow,
      .sigmoid_mul = SigmoidMul,
      .relu_squared = ReluSquaredRow,
      .gelu_erf = GeluErfRow,
      .gelu_tanh = GeluTanhRow,
      .softcap = SoftcapRow,
      .all_finite = AllFinite,
      .rope = Rope,
      .conv_row = ConvRow,
      .delta_update = DeltaUpdate,
      .ssm_update = SsmUpdate,
      .store_key = StoreKey,
      .store_value = StoreValue,
      .seal_rows = SealRows,
      .keys_as_values = KeysAsValues,
      .attend_tile = AttendTile,
      .attend_scratch_bytes = AttendScratchBytes,
      .merge_attention = MergeAttention,
      .finish_attention = FinishAttention,
      .argmax = ArgMax,
  };
}

}  // namespace
}  // namespace HEARTH_ISA

constinit const Kernels HEARTH_ISA_TABLE =
    HEARTH_ISA::MakeTable(HEARTH_ISA_NAME);

}  // namespace hearth
HEARTH_ISA_END
