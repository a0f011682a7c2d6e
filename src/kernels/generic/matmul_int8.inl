// y = W x for block-quantised weights and int8 activations.
//
// Lanes are sixteen outputs. For every 32-value block the dot product is an
// exact int32; then acc = fma(float(dot), dx * dw, acc), block after block. A
// few rows stream the weights from the file's layout through registers; many
// rows unpack sixteen outputs once into scratch and read them from there. Both
// feed the same function, so a row's bits do not depend on the path.
//
// A further block format is one more struct like Q8Blocks: how to make a tile
// (vec/int8_scalar.h) and how to dot it.

struct Q8Blocks {
  static constexpr std::int64_t kBytes = 34;  // f16 scale, 32 int8

  HEARTH_INLINE static void Unpack(const TileRows& rows, Bytes64* tile) {
    for (int half = 0; half < 2; ++half) {
      Bytes64* t = tile + 4 * half;
      HEARTH_UNROLL
      for (int i = 0; i < 4; ++i) {
        t[i] = LoadQuarters(rows, i, 2 + 16 * half);
      }
      Transpose4(t);
      HEARTH_UNROLL
      for (int i = 0; i < 4; ++i) t[i] = PrepareSigned(t[i]);
    }
  }
  HEARTH_INLINE static Ints Start(std::int32_t start) {
    return StartSigned(start);
  }
  HEARTH_INLINE static Ints Dot(Ints acc, Bytes64 codes, const std::int8_t* x) {
    return DotSigned(acc, codes, x);
  }
};

struct Q4Blocks {
  static constexpr std::int64_t kBytes = 18;  // f16 scale, 16 bytes of nibbles

  HEARTH_INLINE static void Unpack(const TileRows& rows, Bytes64* tile) {
    Bytes64 both[4];
    HEARTH_UNROLL
    for (int i = 0; i < 4; ++i) {
      both[i] = LoadQuarters(rows, i, 2);
    }
    Transpose4(both);
    HEARTH_UNROLL
    for (int i = 0; i < 4; ++i) {
      tile[i] = LowNibbles(both[i]);
      tile[4 + i] = HighNibbles(both[i]);
    }
  }
  HEARTH_INLINE static Ints Start(std::int32_t start) {
    return SplatInts(start);
  }
  HEARTH_INLINE static Ints Dot(Ints acc, Bytes64 codes, const std::int8_t* x) {
    return DotUnsigned(acc, codes, x);
  }
};

inline constexpr int kTileVectors = 8;
inline constexpr std::int64_t kTileBytes = 64 * kTileVectors;
// A panel's tiles and then its scales, per block.
inline constexpr std::int64_t kPanelBlockBytes = kTileBytes + 4 * kLanes;

// Where tiles and scales come from: the mapped file, or the unpacked panel.
template <class Blocks>
struct StreamedTiles {
  static constexpr std::int64_t kSweep = kLanes * Blocks::kBytes;

  TileRows rows;
  const std::byte* ahead;  // the sixteen rows that come next

  HEARTH_INLINE Floats Fetch(std::int64_t block, Bytes64* tile) const {
    // Sixteen rows at once are too many streams for the hardware prefetcher,
    // but the next sixteen are one contiguous piece of memory: sweep it in
    // step.
    HEARTH_UNROLL
    for (std::int64_t line = 0; line < kSweep; line += 64) {
      __builtin_prefetch(ahead + block * kSweep + line, 0, 2);
    }
    const TileRows at = rows.At(block * Blocks::kBytes);
    Blocks::Unpack(at, tile);
    return GatherF16(at);
  }
};

struct PanelTiles {
  const std::byte* tiles;   // [block][kTileBytes]
  const std::byte* scales;  // [block][16] float

  HEARTH_INLINE Floats Fetch(std::int64_t block, Bytes64* tile) const {
    HEARTH_UNROLL
    for (int j = 0; j < kTileVectors; ++j) {
      tile[j] = LoadBytes64(tiles + block * kTileBytes + 64 * j);
    }
    return F32Format::Read(scales + block * 64);
  }
};

struct MatmulOutput {
  const float* bias;
  float* y;
  std::int64_t y_stride;
};

HEARTH_INLINE void StoreOutputs(const MatmulOutput& out, std::int64_t row,
                                std::int64_t n, int count, Floats sums) {
  float* y = out.y + row * out.y_stride + n;
  if (count == kLanes) {
    if (out.bias) sums = Add(sums, Load(out.bias + n));
    Store(y, sums);
  } else {
    if (out.bias) sums = Add(sums, LoadN(out.bias + n, count));
    StoreN(y, sums, count);
  }
}

// Which sixteen weight rows give outputs [n, n + count). At the end of the
// matrix the rows step back and the first `lane` lanes belong to earlier
// outputs. A matrix of fewer than sixteen rows gives one output at a time.
struct TilePlace {
  TileRows rows;
  int lane;
  int count;

  TilePlace(const WeightMatrix& w, std::int64_t n, std::int64_t n_end,
            std::int64_t row_bytes)
      : rows(w.data + n * row_bytes, 0), lane(0), count(1) {
    if (w.n_out < kLanes) return;
    const std::int64_t first = std::min(n, w.n_out - kLanes);
    rows = TileRows(w.data + first * row_bytes, row_bytes);
    lane = static_cast<int>(n - first);
    count = static_cast<int>(std::min<std::int64_t>(kLanes, n_end - n));
  }

  HEARTH_INLINE void Put(const MatmulOutput& out, std::int64_t row,
                         std::int64_t n, Floats sums) const {
    if (lane > 0) {
      float lanes[2 * kLanes] = {};
      Store(lanes, sums);
      sums = Load(lanes + lane);
    }
    StoreOutputs(out, row, n, count, sums);
  }
};

// sums[r][p] for kRows packed rows, `row_bytes` apart, and kPanels times
// sixteen outputs.
template <class Blocks, int kRows, int kPanels, class Tiles>
HEARTH_NOINLINE void Int8Tile(const Tiles* tiles, const std::byte* packed,
                              std::int64_t row_bytes, std::int64_t n_blocks,
                              Floats (*sums)[kPanels]) {
  const std::byte* row[kRows];
  Floats acc[kRows][kPanels];
  HEARTH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    row[r] = packed + r * row_bytes;
    HEARTH_UNROLL
    for (int p = 0; p < kPanels; ++p) acc[r][p] = Splat(0.0f);
  }
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    Bytes64 tile[kPanels][kTileVectors];
    Floats weight_scale[kPanels];
    HEARTH_UNROLL
    for (int p = 0; p < kPanels; ++p) {
      weight_scale[p] = tiles[p].Fetch(b, tile[p]);
    }
    HEARTH_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const PackedGroup x{row[r] + b * PackedGroup::kBytes};
      Ints dot[kPanels];
      HEARTH_UNROLL
      for (int p = 0; p < kPanels; ++p) dot[p] = Blocks::Start(x.start());
      HEARTH_UNROLL
      for (int j = 0; j < kTileVectors; ++j) {
        HEARTH_UNROLL
        for (int p = 0; p < kPanels; ++p) {
          dot[p] = Blocks::Dot(dot[p], tile[p][j], x.codes() + 4 * j);
        }
      }
      const Floats x_scale = Splat(x.scale());
      HEARTH_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        acc[r][p] =
            MulAdd(ToFloats(dot[p]), Mul(x_scale, weight_scale[p]), acc[r][p]);
      }
    }
  }
  HEARTH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    HEARTH_UNROLL
    for (int p = 0; p < kPanels; ++p) sums[r][p] = acc[r][p];
  }
}

// Calls Int8Tile for a run-time number of rows, 1..kRows.
template <class Blocks, int kRows, int kPanels, class Tiles>
void Int8Rows(int n_rows, const Tiles* tiles, const std::byte* packed,
              std::int64_t row_bytes, std::int64_t n_blocks,
              Floats (*sums)[kPanels]) {
  if constexpr (kRows > 1) {
    if (n_rows < kRows) {
      Int8Rows<Blocks, kRows - 1, kPanels>(n_rows, tiles, packed, row_bytes,
                                           n_blocks, sums);
      return;
    }
  }
  Int8Tile<Blocks, kRows, kPanels>(tiles, packed, row_bytes, n_blocks, sums);
}

template <class Blocks>
PanelTiles UnpackPanel(const TileRows& rows, std::int64_t n_blocks,
                       std::byte* scratch) {
  std::byte* scales = scratch + n_blocks * kTileBytes;
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    Bytes64 tile[kTileVectors];
    const TileRows at = rows.At(b * Blocks::kBytes);
    Blocks::Unpack(at, tile);
    HEARTH_UNROLL
    for (int j = 0; j < kTileVectors; ++j) {
      StoreBytes64(scratch + b * kTileBytes + 64 * j, tile[j]);
    }
    Store(reinterpret_cast<float*>(scales + b * 64), GatherF16(at));
  }
  return {scratch, scales};
}

// All rows, kRows at a time, for the outputs of kPanels places from n on.
template <class Blocks, int kRows, int kPanels, class Tiles>
void Int8Columns(const Tiles* tiles, const TilePlace* places,
                 const WeightMatrix& w, const std::byte* packed, int n_rows,
                 std::int64_t n, const MatmulOutput& out) {
  const auto row_bytes =
      static_cast<std::int64_t>(PackedRowBytes(w.dtype, w.n_in));
  for (int r = 0; r < n_rows; r += kRows) {
    const int rows = std::min(kRows, n_rows - r);
    Floats sums[kRows][kPanels];
    Int8Rows<Blocks, kRows, kPanels>(rows, tiles, packed + r * row_bytes,
                                     row_bytes, w.n_in / kGroup, sums);
    for (int i = 0; i < rows; ++i) {
      for (int p = 0; p < kPanels; ++p) {
        places[p].Put(out, r + i, n + p * kLanes, sums[i][p]);
      }
    }
  }
}

template <class Blocks>
void Int8Stream(const WeightMatrix& w, const std::byte* packed, int n_rows,
                std::int64_t n_begin, std::int64_t n_end,
                const MatmulOutput& out) {
  const std::int64_t row_bytes = w.n_in / kGroup * Blocks::kBytes;
  for (std::int64_t n = n_begin; n < n_end;) {
    const TilePlace place(w, n, n_end, row_bytes);
    const StreamedTiles<Blocks> tiles{place.rows,
                                      w.data + (n + kLanes) * row_bytes};
    Int8Columns<Blocks, kStreamRows, 1>(&tiles, &place, w, packed, n_rows, n,
                                        out);
    n += place.count;
  }
}

// Unpacks kPanels times sixteen outputs and uses them for every row.
template <class Blocks, int kPanels, std::size_t... kIndex>
void Int8Panels(std::index_sequence<kIndex...>, const WeightMatrix& w,
                const std::byte* packed, int n_rows, std::int64_t n,
                std::int64_t n_end, const MatmulOutput& out,
                std::byte* scratch) {
  const std::int64_t n_blocks = w.n_in / kGroup;
  const TilePlace places[kPanels] = {
      TilePlace(w, n + std::int64_t{kIndex} * kLanes, n_end,
                n_blocks * Blocks::kBytes)...};
  PanelTiles tiles[kPanels];
  for (int p = 0; p < kPanels; ++p) {
    tiles[p] = UnpackPanel<Blocks>(places[p].rows, n_blocks,
                                   scratch + p * n_blocks * kPanelBlockBytes);
  }
  Int8Columns<Blocks, kPanelRows, kPanels>(tiles, places, w, packed, n_rows, n,
                                           out);
}

template <class Blocks>
void MatmulInt8(const WeightMatrix& w, const std::byte* packed, int n_rows,
                std::int64_t n_begin, std::int64_t n_end,
                const MatmulOutput& out, std::byte* scratch) {
  if (n_rows <= kStreamRows || w.n_out < kLanes) {
    Int8Stream<Blocks>(w, packed, n_rows, n_begin, n_end, out);
    return;
  }
  std::int64_t n = n_begin;
  for (; n + (kPanelCount - 1) * kLanes < n_end; n += kPanelCount * kLanes) {
    Int8Panels<Blocks, kPanelCount>(std::make_index_sequence<kPanelCount>(), w,
                                    packed, n_rows, n, n_end, out, scratch);
  }
  for (; n < n_end; n += kLanes) {
    Int8Panels<Blocks, 1>(std::make_index_sequence<1>(), w, packed, n_rows, n,
                          n_end, out, scratch);
  }
}

std::size_t Int8ScratchBytes(std::int64_t n_in, int n_rows) {
  if (n_rows <= kStreamRows) return 0;
  return static_cast<std::size_t>(kPanelCount * (n_in / kGroup) *
                                  kPanelBlockBytes);
}
