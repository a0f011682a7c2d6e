// y = W x where row k of the matrix holds the weights of input k for all
// outputs (kInOut, the linears of .tinygpt).
//
// Lanes are outputs; each sums over k in rising order, one fused multiply-add a
// term.

template <int kRows, int kVectors, class Run>
void ColumnTile(const Run& weights, const WeightMatrix& w, const float* x,
                std::int64_t x_stride, std::int64_t row, std::int64_t n,
                int last_count, const MatmulOutput& out) {
  Floats acc[kRows][kVectors];
  HEARTH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    HEARTH_UNROLL
    for (int v = 0; v < kVectors; ++v) acc[r][v] = Splat(0.0f);
  }
  for (std::int64_t k = 0; k < w.n_in; ++k) {
    const std::int64_t first = k * w.n_out + n;
    HEARTH_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      const Floats weight = v == kVectors - 1 && last_count < kLanes
                                ? weights.AtN(first + v * kLanes, last_count)
                                : weights.At(first + v * kLanes);
      HEARTH_UNROLL
      for (int r = 0; r < kRows; ++r) {
        acc[r][v] = MulAdd(Splat(x[r * x_stride + k]), weight, acc[r][v]);
      }
    }
  }
  HEARTH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    HEARTH_UNROLL
    for (int v = 0; v < kVectors; ++v) {
      StoreOutputs(out, row + r, n + v * kLanes,
                   v == kVectors - 1 ? last_count : kLanes, acc[r][v]);
    }
  }
}

template <int kRows, class Run>
void ColumnRows(const Run& weights, const WeightMatrix& w, const float* x,
                std::int64_t x_stride, std::int64_t row, std::int64_t n_begin,
                std::int64_t n_end, const MatmulOutput& out) {
  constexpr std::int64_t kWidth = kTileColumns * kLanes;
  std::int64_t n = n_begin;
  for (; n + kWidth <= n_end; n += kWidth) {
    ColumnTile<kRows, kTileColumns>(weights, w, x, x_stride, row, n, kLanes,
                                    out);
  }
  for (; n < n_end; n += kLanes) {
    const int count =
        static_cast<int>(std::min<std::int64_t>(kLanes, n_end - n));
    ColumnTile<kRows, 1>(weights, w, x, x_stride, row, n, count, out);
  }
}

template <int kRows, class Run>
void ColumnMatmul(const Run& weights, const WeightMatrix& w, const float* x,
                  std::int64_t x_stride, int row, int n_rows,
                  std::int64_t n_begin, std::int64_t n_end,
                  const MatmulOutput& out) {
  for (; row + kRows <= n_rows; row += kRows) {
    ColumnRows<kRows>(weights, w, x + row * x_stride, x_stride, row, n_begin,
                      n_end, out);
  }
  if constexpr (kRows > 1) {
    ColumnMatmul<kRows - 1>(weights, w, x, x_stride, row, n_rows, n_begin,
                            n_end, out);
  }
}

template <class Run>
void MatmulColumns(const WeightMatrix& w, const std::byte* packed, int n_rows,
                   std::int64_t n_begin, std::int64_t n_end,
                   const MatmulOutput& out) {
  const auto x_stride =
      static_cast<std::int64_t>(PackedRowBytes(w.dtype, w.n_in) / 4);
  ColumnMatmul<kTileRows>(RunOf<Run>(w), w,
                          reinterpret_cast<const float*>(packed), x_stride, 0,
                          n_rows, n_begin, n_end, out);
}
