// y = W x for weights that are read as exact floats, rows of W contiguous
// (kOutIn).
//
// Lanes run along k: element k of a row is added to lane k % 16, in rising k,
// and ReduceAdd ends the sum. A few rows read the weights from the file's
// layout and convert them in registers; many rows convert a panel of sixteen
// outputs once a chunk of k, keep the lanes of unfinished sums in scratch, and
// reduce sixteen outputs at a time. The order of additions is the same.

inline constexpr std::int64_t kChunk = 512;  // k values of a panel: 32 KiB
inline constexpr int kBlockRows = 96;        // rows that share a panel

// acc[r][c] += the lanes of weights c times row r over k in [0, n), n a
// multiple of 16.
template <int kRows, int kColumns, class Run>
HEARTH_INLINE void DotLanes(const Run* w, const float* x, std::int64_t x_stride,
                            std::int64_t n, Floats (&acc)[kRows][kColumns]) {
  for (std::int64_t k = 0; k < n; k += kLanes) {
    Floats weight[kColumns];
    HEARTH_UNROLL
    for (int c = 0; c < kColumns; ++c) weight[c] = w[c].At(k);
    HEARTH_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const Floats value = Load(x + r * x_stride + k);
      HEARTH_UNROLL
      for (int c = 0; c < kColumns; ++c) {
        acc[r][c] = MulAdd(value, weight[c], acc[r][c]);
      }
    }
  }
}

// One register tile of the streaming path.
template <int kRows, int kColumns, class Run>
void StreamTile(const Run& weights, std::int64_t n_in, const float* x,
                std::int64_t x_stride, std::int64_t row, std::int64_t n,
                const MatmulOutput& out) {
  Run w[kColumns];
  HEARTH_UNROLL
  for (int c = 0; c < kColumns; ++c) w[c] = weights.From((n + c) * n_in);
  Floats acc[kRows][kColumns];
  HEARTH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    HEARTH_UNROLL
    for (int c = 0; c < kColumns; ++c) acc[r][c] = Splat(0.0f);
  }
  const std::int64_t whole = n_in / kLanes * kLanes;
  DotLanes<kRows, kColumns>(w, x, x_stride, whole, acc);
  const int tail = static_cast<int>(n_in - whole);
  HEARTH_UNROLL
  for (int c = 0; c < kColumns; ++c) {
    const Floats weight = tail ? w[c].AtN(whole, tail) : Splat(0.0f);
    HEARTH_UNROLL
    for (int r = 0; r < kRows; ++r) {
      if (tail) {
        acc[r][c] = MulAdd(Load(x + r * x_stride + whole), weight, acc[r][c]);
      }
      const float sum = ReduceAdd(acc[r][c]);
      const std::int64_t output = n + c;
      out.y[(row + r) * out.y_stride + output] =
          out.bias ? sum + out.bias[output] : sum;
    }
  }
}

template <int kRows, class Run>
void StreamRows(const Run& weights, std::int64_t n_in, const float* x,
                std::int64_t x_stride, std::int64_t row, std::int64_t n_begin,
                std::int64_t n_end, const MatmulOutput& out) {
  std::int64_t n = n_begin;
  for (; n + kTileColumns <= n_end; n += kTileColumns) {
    StreamTile<kRows, kTileColumns>(weights, n_in, x, x_stride, row, n, out);
  }
  if constexpr (kTileColumns > 1) {
    for (; n < n_end; ++n) {
      StreamTile<kRows, 1>(weights, n_in, x, x_stride, row, n, out);
    }
  }
}

// All rows, kRows at a time, what is left in ever smaller tiles.
template <int kRows, class Run>
void StreamMatmul(const Run& weights, std::int64_t n_in, const float* x,
                  std::int64_t x_stride, int row, int n_rows,
                  std::int64_t n_begin, std::int64_t n_end,
                  const MatmulOutput& out) {
  for (; row + kRows <= n_rows; row += kRows) {
    StreamRows<kRows>(weights, n_in, x + row * x_stride, x_stride, row, n_begin,
                      n_end, out);
  }
  if constexpr (kRows > 1) {
    StreamMatmul<kRows / 2>(weights, n_in, x, x_stride, row, n_rows, n_begin,
                            n_end, out);
  }
}

template <class Run>
void MatmulFloat(const WeightMatrix& w, const std::byte* packed, int n_rows,
                 std::int64_t n_begin, std::int64_t n_end,
                 const MatmulOutput& out, std::byte* /*scratch*/) {
  const auto x_stride =
      static_cast<std::int64_t>(PackedRowBytes(w.dtype, w.n_in) / 4);
  StreamMatmul<kTileRows>(RunOf<Run>(w), w.n_in,
                          reinterpret_cast<const float*>(packed), x_stride, 0,
                          n_rows, n_begin, n_end, out);
}
