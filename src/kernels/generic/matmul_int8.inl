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

// Sixteen rows of the weight matrix; when fewer are left the last one repeats.
struct RowPointers {
  const std::byte* row[kLanes];

  RowPointers(const WeightMatrix& w, std::int64_t n, std::int64_t row_bytes) {
    for (std::int64_t i = 0; i < kLanes; ++i) {
      row[i] = w.data + std::min(n + i, w.n_out - 1) * row_bytes;
    }
  }
};

struct Q8Blocks {
  static constexpr std::int64_t kBytes = 34;  // f16 scale, 32 int8

  HEARTH_INLINE static void Unpack(const RowPointers& rows, std::int64_t block,
                                   Bytes64* tile) {
    for (int half = 0; half < 2; ++half) {
      Bytes64* t = tile + 4 * half;
      HEARTH_UNROLL
      for (int i = 0; i < 4; ++i) {
        t[i] = LoadQuarters(rows.row + i, block * kBytes + 2 + 16 * half);
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

  HEARTH_INLINE static void Unpack(const RowPointers& rows, std::int64_t block,
                                   Bytes64* tile) {
    Bytes64 both[4];
    HEARTH_UNROLL
    for (int i = 0; i < 4; ++i) {
      both[i] = LoadQuarters(rows.row + i, block * kBytes + 2);
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

// Where tiles and scales come from: the mapped file, or the unpacked panel.
template <class Blocks>
struct StreamedTiles {
  RowPointers rows;

  HEARTH_INLINE Floats Fetch(std::int64_t block, Bytes64* tile) const {
    Blocks::Unpack(rows, block, tile);
    return GatherF16(rows.row, block * Blocks::kBytes);
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

template <class Blocks, int kRows, class Tiles>
void Int8Tile(const Tiles& tiles, const PackedInt8* x, std::int64_t n_blocks,
              Floats* sums) {
  Floats acc[kRows];
  HEARTH_UNROLL
  for (int r = 0; r < kRows; ++r) acc[r] = Splat(0.0f);
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    Bytes64 tile[kTileVectors];
    const Floats weight_scale = tiles.Fetch(b, tile);
    HEARTH_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const std::int8_t* codes = x[r].codes + b * kGroup;
      Ints dot = Blocks::Start(LoadLe<std::int32_t>(x[r].starts + b * 4));
      HEARTH_UNROLL
      for (int j = 0; j < kTileVectors; ++j) {
        dot = Blocks::Dot(dot, tile[j], codes + 4 * j);
      }
      const Floats scale =
          Mul(Splat(LoadLe<float>(x[r].scales + b * 4)), weight_scale);
      acc[r] = MulAdd(ToFloats(dot), scale, acc[r]);
    }
  }
  HEARTH_UNROLL
  for (int r = 0; r < kRows; ++r) sums[r] = acc[r];
}

// Calls Int8Tile for a run-time number of rows, 1..kQuantRows.
template <class Blocks, class Tiles, int kRows = kQuantRows>
void Int8Rows(int n_rows, const Tiles& tiles, const PackedInt8* x,
              std::int64_t n_blocks, Floats* sums) {
  if constexpr (kRows > 1) {
    if (n_rows < kRows) {
      Int8Rows<Blocks, Tiles, kRows - 1>(n_rows, tiles, x, n_blocks, sums);
      return;
    }
  }
  Int8Tile<Blocks, kRows>(tiles, x, n_blocks, sums);
}

template <class Blocks>
PanelTiles UnpackPanel(const RowPointers& rows, std::int64_t n_blocks,
                       std::byte* scratch) {
  std::byte* scales = scratch + n_blocks * kTileBytes;
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    Bytes64 tile[kTileVectors];
    Blocks::Unpack(rows, b, tile);
    HEARTH_UNROLL
    for (int j = 0; j < kTileVectors; ++j) {
      StoreBytes64(scratch + b * kTileBytes + 64 * j, tile[j]);
    }
    Store(reinterpret_cast<float*>(scales + b * 64),
          GatherF16(rows.row, b * Blocks::kBytes));
  }
  return {scratch, scales};
}

template <class Blocks, class Tiles>
void Int8Columns(const Tiles& tiles, const WeightMatrix& w,
                 const std::byte* packed, int n_rows, std::int64_t n, int count,
                 const MatmulOutput& out) {
  const std::int64_t n_blocks = w.n_in / kGroup;
  const auto row_bytes =
      static_cast<std::int64_t>(PackedRowBytes(w.dtype, w.n_in));
  for (int r = 0; r < n_rows; r += kQuantRows) {
    const int rows = std::min(kQuantRows, n_rows - r);
    PackedInt8 x[kQuantRows];
    for (int i = 0; i < rows; ++i) {
      x[i] = PackedInt8(packed + (r + i) * row_bytes, n_blocks);
    }
    Floats sums[kQuantRows];
    Int8Rows<Blocks>(rows, tiles, x, n_blocks, sums);
    for (int i = 0; i < rows; ++i) StoreOutputs(out, r + i, n, count, sums[i]);
  }
}

template <class Blocks>
void MatmulInt8(const WeightMatrix& w, const std::byte* packed, int n_rows,
                std::int64_t n_begin, std::int64_t n_end,
                const MatmulOutput& out, std::byte* scratch) {
  const std::int64_t n_blocks = w.n_in / kGroup;
  const std::int64_t row_bytes = n_blocks * Blocks::kBytes;
  for (std::int64_t n = n_begin; n < n_end; n += kLanes) {
    const int count =
        static_cast<int>(std::min<std::int64_t>(kLanes, n_end - n));
    const RowPointers rows(w, n, row_bytes);
    if (n_rows <= kQuantRows) {
      Int8Columns<Blocks>(StreamedTiles<Blocks>{rows}, w, packed, n_rows, n,
                          count, out);
    } else {
      Int8Columns<Blocks>(UnpackPanel<Blocks>(rows, n_blocks, scratch), w,
                          packed, n_rows, n, count, out);
    }
  }
}

std::size_t Int8ScratchBytes(std::int64_t n_in) {
  return static_cast<std::size_t>(n_in / kGroup * (kTileBytes + 64));
}
