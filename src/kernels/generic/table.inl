// Puts the functions of one instruction set into its table.

using Bf16Run = PlainRun<Bf16Format>;
using F16Run = PlainRun<F16Format>;
using F32Run = PlainRun<F32Format>;

void Matmul(const WeightMatrix& w, const std::byte* packed, int n_rows,
            std::int64_t n_begin, std::int64_t n_end, const float* bias,
            float* y, std::int64_t y_stride, std::byte* scratch) {
  const MatmulOutput out{bias, y, y_stride};
  const bool columns = w.layout == WeightLayout::kInOut;
  const auto run = [&](auto row_wise, auto column_wise) {
    if (columns) {
      column_wise(w, packed, n_rows, n_begin, n_end, out);
    } else {
      row_wise(w, packed, n_rows, n_begin, n_end, out, scratch);
    }
  };
  switch (w.dtype) {
    case DType::kF32:
      return run(MatmulFloat<F32Run>, MatmulColumns<F32Run>);
    case DType::kF16:
      return run(MatmulFloat<F16Run>, MatmulColumns<F16Run>);
    case DType::kBF16:
      return run(MatmulFloat<Bf16Run>, MatmulColumns<Bf16Run>);
    case DType::kTgInt4:
      return run(MatmulFloat<TgInt4Run>, MatmulColumns<TgInt4Run>);
    default:
      return WithBlocks(w.dtype, [&](auto blocks) {
        MatmulInt8<decltype(blocks)>(w, packed, n_rows, n_begin, n_end, out,
                                     scratch);
      });
  }
}

std::size_t MatmulScratchBytes(const WeightMatrix& w, int n_rows) {
  if (IsBlockQuantised(w.dtype)) {
    return Int8ScratchBytes(w.dtype, w.n_in, n_rows);
  }
  return w.layout == WeightLayout::kOutIn ? FloatScratchBytes(n_rows) : 0;
}

template <class Run>
void DequantizeRun(const Run& run, std::int64_t n, float* out) {
  ForEachVector(n, [&](std::int64_t i, int count) {
    StoreUpTo(out + i, count == kLanes ? run.At(i) : run.AtN(i, count), count);
  });
}

void DequantizeRow(const WeightMatrix& w, std::int64_t row, float* out) {
  const std::int64_t first = row * w.n_in;
  switch (w.dtype) {
    case DType::kF32:
      return DequantizeRun(RunOf<F32Run>(w).From(first), w.n_in, out);
    case DType::kF16:
      return DequantizeRun(RunOf<F16Run>(w).From(first), w.n_in, out);
    case DType::kBF16:
      return DequantizeRun(RunOf<Bf16Run>(w).From(first), w.n_in, out);
    case DType::kTgInt4:
      return DequantizeRun(RunOf<TgInt4Run>(w).From(first), w.n_in, out);
    default: {
      const DTypeInfo& info = InfoOf(w.dtype);
      return DequantizeBlocks(
          w.dtype, w.data + first / info.block_elements * info.block_bytes,
          w.n_in, out);
    }
  }
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
      .gelu_erf = GeluErfRow,
      .gelu_tanh = GeluTanhRow,
      .softcap = SoftcapRow,
      .rope = Rope,
      .store_key = StoreKey,
      .store_value = StoreValue,
      .seal_rows = SealRows,
      .attend_tile = AttendTile,
      .attend_scratch_bytes = AttendScratchBytes,
      .merge_attention = MergeAttention,
      .finish_attention = FinishAttention,
      .argmax = ArgMax,
  };
}
