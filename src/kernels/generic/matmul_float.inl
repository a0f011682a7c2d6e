// y = W x for weights that are read as exact floats, rows of W contiguous
// (kOutIn).
//
// Lanes run along k: element k of a row is added to lane k % 16, in rising k,
// and ReduceAdd ends the sum. A few rows read the weights from the file's
// layout and convert them in registers; many rows convert a panel of sixteen
// outputs once a chunk of k, keep the lanes of unfinished sums in scratch, and
// reduce sixteen outputs at a time. The order of additions is the same.

inline constexpr std::int64_t kChunk = 1024;  // k values of a panel: 64 KiB
inline constexpr int kBlockRows = 256;        // rows that share a panel

// acc[r][c] += the lanes of weights c times row r over k in [0, n), n a
// multiple of 16.
template <int kRows, int kColumns, bool kPrefetch = false, class Run>
HEARTH_INLINE void DotLanes(const Run* w, const float* x, std::int64_t x_stride,
                            std::int64_t n, Floats (&acc)[kRows][kColumns]) {
  // The columns that come next are one contiguous piece of memory: sweep it in
  // step, since short rows end before the hardware prefetcher has caught on.
  const std::byte* ahead = w[kColumns - 1].Address(n);
  const std::int64_t sweep = w[0].Address(kColumns * kLanes) - w[0].Address(0);
  for (std::int64_t k = 0; k < n; k += kLanes) {
    if constexpr (kPrefetch) {
      for (std::int64_t line = 0; line < sweep; line += 64) {
        __builtin_prefetch(ahead + line, 0, 2);
      }
      ahead += sweep;
    }
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
HEARTH_NOINLINE void StreamTile(const Run& weights, std::int64_t n_in,
                                const float* x, std::int64_t x_stride,
                                std::int64_t row, std::int64_t n,
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
  DotLanes<kRows, kColumns, true>(w, x, x_stride, whole, acc);
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

// All rows, kRows at a time; what is left in one smaller tile, so that no
// weight is streamed twice for it.
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
    StreamMatmul<kRows - 1>(weights, n_in, x, x_stride, row, n_rows, n_begin,
                            n_end, out);
  }
}

// Weights [n, n + count) x [k, k + size) as floats, [16][kChunk]; zeros after
// the last input and the last output.
template <class Run>
void ConvertPanel(const Run& weights, std::int64_t n_in, std::int64_t n,
                  int count, std::int64_t k, std::int64_t size, float* panel) {
  for (int c = 0; c < kLanes; ++c) {
    float* out = panel + c * kChunk;
    const std::int64_t first = (n + c) * n_in + k;
    for (std::int64_t i = 0; i < size; i += kLanes) {
      const int live =
          static_cast<int>(std::min<std::int64_t>(kLanes, n_in - k - i));
      Floats value = Splat(0.0f);
      if (c < count) {
        value = live == kLanes ? weights.At(first + i)
                               : weights.AtN(first + i, live);
      }
      Store(out + i, value);
    }
  }
}

// One register tile over one chunk: lanes[r][c] (16 floats each, rows 16 * 16
// apart) continue from the chunk before, or start at zero.
template <int kRows>
HEARTH_NOINLINE void PanelTile(const float* panel, const float* x,
                               std::int64_t x_stride, std::int64_t size,
                               bool first, float* lanes) {
  constexpr std::int64_t kRowLanes = kLanes * kLanes;
  PlainRun<F32Format> w[kTileColumns];
  Floats acc[kRows][kTileColumns];
  HEARTH_UNROLL
  for (int c = 0; c < kTileColumns; ++c) {
    w[c].data = reinterpret_cast<const std::byte*>(panel + c * kChunk);
    HEARTH_UNROLL
    for (int r = 0; r < kRows; ++r) {
      acc[r][c] =
          first ? Splat(0.0f) : Load(lanes + r * kRowLanes + c * kLanes);
    }
  }
  DotLanes<kRows, kTileColumns>(w, x, x_stride, size, acc);
  HEARTH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    HEARTH_UNROLL
    for (int c = 0; c < kTileColumns; ++c) {
      Store(lanes + r * kRowLanes + c * kLanes, acc[r][c]);
    }
  }
}

// A row tile stays in the first-level cache while the panel passes by.
template <int kRows>
void PanelRows(const float* panel, const float* x, std::int64_t x_stride,
               int row, int n_rows, std::int64_t size, bool first,
               float* lanes) {
  for (; row + kRows <= n_rows; row += kRows) {
    for (int c = 0; c < kLanes; c += kTileColumns) {
      PanelTile<kRows>(panel + c * kChunk, x + row * x_stride, x_stride, size,
                       first, lanes + (row * kLanes + c) * kLanes);
    }
  }
  if constexpr (kRows > 1) {
    PanelRows<kRows - 1>(panel, x, x_stride, row, n_rows, size, first, lanes);
  }
}

// Sixteen outputs from n on, for up to kBlockRows rows.
template <class Run>
void PanelMatmul(const Run& weights, std::int64_t n_in, const float* x,
                 std::int64_t x_stride, int first_row, int n_rows,
                 std::int64_t n, int count, const MatmulOutput& out,
                 float* scratch) {
  float* panel = scratch;
  float* lanes = scratch + kLanes * kChunk;
  for (std::int64_t k = 0; k < n_in; k += kChunk) {
    const std::int64_t size =
        RoundUp(std::min(kChunk, n_in - k), std::int64_t{kLanes});
    ConvertPanel(weights, n_in, n, count, k, size, panel);
    PanelRows<kTileRows>(panel, x + k, x_stride, 0, n_rows, size, k == 0,
                         lanes);
  }
  for (int r = 0; r < n_rows; ++r) {
    StoreOutputs(out, first_row + r, n, count,
                 ReduceAdd16(lanes + r * kLanes * kLanes));
  }
}

inline constexpr int kStreamRowsMax = 2 * kTileRows;

template <class Run>
void MatmulFloat(const WeightMatrix& w, const std::byte* packed, int n_rows,
                 std::int64_t n_begin, std::int64_t n_end,
                 const MatmulOutput& out, std::byte* scratch) {
  const auto x_stride =
      static_cast<std::int64_t>(PackedRowBytes(w.dtype, w.n_in) / 4);
  const auto* x = reinterpret_cast<const float*>(packed);
  const Run weights = RunOf<Run>(w);
  if (n_rows <= kStreamRowsMax) {
    StreamMatmul<kTileRows>(weights, w.n_in, x, x_stride, 0, n_rows, n_begin,
                            n_end, out);
    return;
  }
  for (int row = 0; row < n_rows; row += kBlockRows) {
    const int rows = std::min(kBlockRows, n_rows - row);
    for (std::int64_t n = n_begin; n < n_end; n += kLanes) {
      const int count =
          static_cast<int>(std::min<std::int64_t>(kLanes, n_end - n));
      PanelMatmul(weights, w.n_in, x + row * x_stride, x_stride, row, rows, n,
                  count, out, reinterpret_cast<float*>(scratch));
    }
  }
}

std::size_t FloatScratchBytes(int n_rows) {
  if (n_rows <= kStreamRowsMax) return 0;
  const std::int64_t rows = std::min(n_rows, kBlockRows);
  return static_cast<std::size_t>(kLanes * kChunk + rows * kLanes * kLanes) *
         sizeof(float);
}
