// y = W x for block-quantised weights and int8 activations.
//
// Lanes are sixteen outputs. For every group of 32 values (or half of it, where
// the format has a scale per 16) the dot product is an exact int32; sums then
// go group after group, in the order that Int8Tile writes down. A few rows
// stream the weights from the file, many rows unpack sixteen outputs once into
// scratch; both feed the same function, so a row's bits do not depend on the
// path. Formats: block_formats.inl and k_formats.inl.

// --- Where tiles and scales come from ----------------------------------------
// Q8_0 and Q4_0 from the mapped file by way of registers.
template <class Blocks>
struct StreamedTiles {
  static constexpr std::int64_t kSweep = kLanes * Blocks::kBytes;

  TileRows rows;
  const std::byte* ahead;  // sixteen rows that come soon

  HEARTH_INLINE void Fetch(std::int64_t block, Bytes64* tile,
                           Floats* scales) const {
    // Sixteen rows at once are too many streams for the hardware prefetcher,
    // but sixteen that come are one contiguous piece of memory: sweep it in
    // step.
    HEARTH_UNROLL
    for (std::int64_t line = 0; line < kSweep; line += 64) {
      __builtin_prefetch(ahead + block * kSweep + line, 0, 2);
    }
    scales[0] = Blocks::UnpackTile(rows.At(block * Blocks::kBytes), tile);
  }
};

template <class Dots>
struct PanelTiles {
  Panel<Dots> panel;

  HEARTH_INLINE void Fetch(std::int64_t group, Bytes64* tile,
                           Floats* scales) const {
    const Panel<Dots> at = panel.From(group);
    HEARTH_UNROLL
    for (int j = 0; j < kTileVectors; ++j) {
      tile[j] = LoadBytes64(at.tiles + 64 * j);
    }
    HEARTH_UNROLL
    for (int i = 0; i < kScaleVectors<Dots>; ++i) {
      scales[i] = F32Format::Read(at.scales + 64 * i);
    }
  }
};

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

// acc plus one group: scale * x_scale * dot, less the minimums times sum(x).
template <class Dots>
HEARTH_INLINE Floats AddGroup(const Ints* dot, const Floats* scales,
                              const PackedGroup<Dots::kHalves ? 2 : 1>& x,
                              Floats acc) {
  const Floats x_scale = Splat(x.scale());
  if constexpr (Dots::kHalves) {
    const Floats first = Mul(ToFloats(dot[0]), scales[0]);
    acc = MulAdd(x_scale, MulAdd(ToFloats(dot[1]), scales[1], first), acc);
    if constexpr (Dots::kMinimums) {
      acc = NegMulAdd(Splat(x.sum(0)), scales[2], acc);
      acc = NegMulAdd(Splat(x.sum(1)), scales[3], acc);
    }
  } else {
    acc = MulAdd(ToFloats(dot[0]), Mul(x_scale, scales[0]), acc);
    if constexpr (Dots::kMinimums) {
      acc = NegMulAdd(Splat(x.sum(0)), scales[1], acc);
    }
  }
  return acc;
}

// sums[r][p] += n_groups groups of kRows packed rows, `row_bytes` apart, and
// kPanels times sixteen outputs.
template <class Dots, int kRows, int kPanels, class Tiles>
HEARTH_NOINLINE void Int8Tile(const Tiles* tiles, const std::byte* packed,
                              std::int64_t row_bytes, std::int64_t n_groups,
                              Floats (*sums)[kPanels]) {
  constexpr int kDots = Dots::kHalves ? 2 : 1;
  const std::byte* row[kRows];
  Floats acc[kRows][kPanels];
  HEARTH_UNROLL
  for (int r = 0; r < kRows; ++r) {
    row[r] = packed + r * row_bytes;
    HEARTH_UNROLL
    for (int p = 0; p < kPanels; ++p) acc[r][p] = sums[r][p];
  }
  for (std::int64_t b = 0; b < n_groups; ++b) {
    Bytes64 tile[kPanels][kTileVectors];
    Floats scales[kPanels][kScaleVectors<Dots>];
    HEARTH_UNROLL
    for (int p = 0; p < kPanels; ++p) tiles[p].Fetch(b, tile[p], scales[p]);
    HEARTH_UNROLL
    for (int r = 0; r < kRows; ++r) {
      const PackedGroup<kDots> x{row[r] + b * PackedGroup<kDots>::kBytes};
      Ints dot[kPanels][kDots];
      HEARTH_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        HEARTH_UNROLL
        for (int i = 0; i < kDots; ++i) {
          dot[p][i] = Dots::Start(Dots::kMinimums ? 0 : x.start(i));
        }
      }
      HEARTH_UNROLL
      for (int j = 0; j < kTileVectors; ++j) {
        const int i = j * kDots / kTileVectors;
        HEARTH_UNROLL
        for (int p = 0; p < kPanels; ++p) {
          dot[p][i] = Dots::Dot(dot[p][i], tile[p][j], x.codes() + 4 * j);
        }
      }
      HEARTH_UNROLL
      for (int p = 0; p < kPanels; ++p) {
        acc[r][p] = AddGroup<Dots>(dot[p], scales[p], x, acc[r][p]);
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
template <class Dots, int kRows, int kPanels, class Tiles>
void Int8Rows(int n_rows, const Tiles* tiles, const std::byte* packed,
              std::int64_t row_bytes, std::int64_t n_groups,
              Floats (*sums)[kPanels]) {
  if constexpr (kRows > 1) {
    if (n_rows < kRows) {
      Int8Rows<Dots, kRows - 1, kPanels>(n_rows, tiles, packed, row_bytes,
                                         n_groups, sums);
      return;
    }
  }
  Int8Tile<Dots, kRows, kPanels>(tiles, packed, row_bytes, n_groups, sums);
}

template <class Blocks>
void UnpackPanel(const TileRows& rows, std::int64_t n_blocks,
                 const Panel<typename Blocks::Dots>& panel) {
  for (std::int64_t b = 0; b < n_blocks; ++b) {
    const Panel<typename Blocks::Dots> out = panel.From(b * Blocks::kGroups);
    Blocks::Unpack(rows.At(b * Blocks::kBytes), out);
  }
}

// All rows, kRows at a time, for the outputs of kPanels places from n on.
template <class Dots, int kRows, int kPanels, class Tiles>
void Int8Columns(const Tiles* tiles, const TilePlace* places,
                 const WeightMatrix& w, const std::byte* packed, int n_rows,
                 std::int64_t n, const MatmulOutput& out) {
  const auto row_bytes =
      static_cast<std::int64_t>(PackedRowBytes(w.dtype, w.n_in));
  for (int r = 0; r < n_rows; r += kRows) {
    const int rows = std::min(kRows, n_rows - r);
    Floats sums[kRows][kPanels];
    for (int i = 0; i < rows; ++i) {
      for (int p = 0; p < kPanels; ++p) sums[i][p] = Splat(0.0f);
    }
    Int8Rows<Dots, kRows, kPanels>(rows, tiles, packed + r * row_bytes,
                                   row_bytes, w.n_in / kGroup, sums);
    for (int i = 0; i < rows; ++i) {
      for (int p = 0; p < kPanels; ++p) {
        places[p].Put(out, r + i, n + p * kLanes, sums[i][p]);
      }
    }
  }
}

// --- Few rows ---------------------------------------------------------------

template <class Blocks>
void Int8Stream(const WeightMatrix& w, const std::byte* packed, int n_rows,
                std::int64_t n_begin, std::int64_t n_end,
                const MatmulOutput& out) {
  const std::int64_t row_bytes = w.n_in / kGroup * Blocks::kBytes;
  for (std::int64_t n = n_begin; n < n_end;) {
    const TilePlace place(w, n, n_end, row_bytes);
    const StreamedTiles<Blocks> tiles{
        place.rows, w.data + n * row_bytes + SweepAhead(kLanes * row_bytes)};
    Int8Columns<typename Blocks::Dots, kStreamRows, 1>(&tiles, &place, w,
                                                       packed, n_rows, n, out);
    n += place.count;
  }
}

// The other formats unpack eight groups at a time into a few KiB that stay in
// the first-level cache, so that only the unpacking is written per format.
inline constexpr std::int64_t kSliceGroups = 8;
inline constexpr int kSliceRows = 8;

template <class Blocks>
struct SlicedRows {
  using Dots = typename Blocks::Dots;
  static constexpr std::int64_t kXBytes =
      PackedGroup < Dots::kHalves ? 2 : 1 > ::kBytes;

  alignas(64) std::byte buffer[kSliceGroups * kPanelGroupBytes<Dots>];
  Floats sums[kSliceRows][1];

  // n_rows <= kSliceRows packed rows, `x_stride` apart.
  void Run(const TileRows& rows, const std::byte* ahead, std::int64_t n_groups,
           const std::byte* packed, std::int64_t x_stride, int n_rows) {
    const PanelTiles<Dots> tiles{{buffer, buffer + kSliceGroups * kTileBytes}};
    for (Floats(&sum)[1] : sums) sum[0] = Splat(0.0f);
    for (std::int64_t g = 0; g < n_groups; g += kSliceGroups) {
      const std::int64_t size = std::min(kSliceGroups, n_groups - g);
      const std::int64_t offset = g / Blocks::kGroups * Blocks::kBytes;
      const std::int64_t sweep =
          size / Blocks::kGroups * Blocks::kBytes * kLanes;
      for (std::int64_t line = 0; line < sweep; line += 64) {
        __builtin_prefetch(ahead + offset * kLanes + line, 0, 2);
      }
      UnpackPanel<Blocks>(rows.At(offset), size / Blocks::kGroups, tiles.panel);
      for (int r = 0; r < n_rows; r += kPanelRows) {
        Int8Rows<Dots, kPanelRows, 1>(std::min(kPanelRows, n_rows - r), &tiles,
                                      packed + r * x_stride + g * kXBytes,
                                      x_stride, size, sums + r);
      }
    }
  }
};

// One row needs each tile once: it is dotted where it was unpacked, in
// registers. Takes what Unpack hands over, as a panel does.
template <class Dots>
struct FusedRow {
  static constexpr int kDots = Dots::kHalves ? 2 : 1;

  const std::byte* x;  // the block's first packed group
  Floats acc;
  Floats scales[kSliceGroups][kScaleVectors<Dots>];

  HEARTH_INLINE void PutScale(int group, int i, Floats scale) {
    scales[group][i] = scale;
  }
  HEARTH_INLINE void Put(int group, const Bytes64* tile) {
    const PackedGroup<kDots> at{x + group * PackedGroup<kDots>::kBytes};
    Ints dot[kDots];
    HEARTH_UNROLL
    for (int i = 0; i < kDots; ++i) {
      dot[i] = Dots::Start(Dots::kMinimums ? 0 : at.start(i));
    }
    HEARTH_UNROLL
    for (int j = 0; j < kTileVectors; ++j) {
      const int i = j * kDots / kTileVectors;
      dot[i] = Dots::Dot(dot[i], tile[j], at.codes() + 4 * j);
    }
    acc = AddGroup<Dots>(dot, scales[group], at, acc);
  }
};

template <class Blocks>
void Int8FusedRow(const WeightMatrix& w, const std::byte* packed,
                  std::int64_t n_begin, std::int64_t n_end,
                  const MatmulOutput& out) {
  using Dots = typename Blocks::Dots;
  constexpr std::int64_t kSweep = kLanes * Blocks::kBytes;
  const std::int64_t n_blocks = w.n_in / kGroup / Blocks::kGroups;
  const std::int64_t row_bytes = n_blocks * Blocks::kBytes;
  FusedRow<Dots> row;
  for (std::int64_t n = n_begin; n < n_end;) {
    const TilePlace place(w, n, n_end, row_bytes);
    const std::byte* ahead =
        w.data + n * row_bytes + SweepAhead(kLanes * row_bytes);
    row.x = packed;
    row.acc = Splat(0.0f);
    for (std::int64_t b = 0; b < n_blocks; ++b) {
      for (std::int64_t line = 0; line < kSweep; line += 64) {
        __builtin_prefetch(ahead + b * kSweep + line, 0, 2);
      }
      Blocks::Unpack(place.rows.At(b * Blocks::kBytes), row);
      row.x += Blocks::kGroups * PackedGroup<FusedRow<Dots>::kDots>::kBytes;
    }
    place.Put(out, 0, n, row.acc);
    n += place.count;
  }
}

template <class Blocks>
void Int8Slices(const WeightMatrix& w, const std::byte* packed, int n_rows,
                std::int64_t n_begin, std::int64_t n_end,
                const MatmulOutput& out) {
  const std::int64_t n_groups = w.n_in / kGroup;
  const std::int64_t row_bytes = n_groups / Blocks::kGroups * Blocks::kBytes;
  const auto x_stride =
      static_cast<std::int64_t>(PackedRowBytes(w.dtype, w.n_in));
  SlicedRows<Blocks> slices;
  for (std::int64_t n = n_begin; n < n_end;) {
    const TilePlace place(w, n, n_end, row_bytes);
    const std::byte* ahead =
        w.data + n * row_bytes + SweepAhead(kLanes * row_bytes);
    for (int r = 0; r < n_rows; r += kSliceRows) {
      const int rows = std::min(kSliceRows, n_rows - r);
      slices.Run(place.rows, ahead, n_groups, packed + r * x_stride, x_stride,
                 rows);
      for (int i = 0; i < rows; ++i) {
        place.Put(out, r + i, n, slices.sums[i][0]);
      }
    }
    n += place.count;
  }
}

// --- Many rows --------------------------------------------------------------
// Unpacks kPanels times sixteen outputs and uses them for every
// row.
template <class Blocks, int kPanels, std::size_t... kIndex>
void Int8Panels(std::index_sequence<kIndex...>, const WeightMatrix& w,
                const std::byte* packed, int n_rows, std::int64_t n,
                std::int64_t n_end, const MatmulOutput& out,
                std::byte* scratch) {
  using Dots = typename Blocks::Dots;
  const std::int64_t n_groups = w.n_in / kGroup;
  const std::int64_t n_blocks = n_groups / Blocks::kGroups;
  const TilePlace places[kPanels] = {
      TilePlace(w, n + std::int64_t{kIndex} * kLanes, n_end,
                n_blocks * Blocks::kBytes)...};
  PanelTiles<Dots> tiles[kPanels];
  for (int p = 0; p < kPanels; ++p) {
    std::byte* data = scratch + p * n_groups * kPanelGroupBytes<Dots>;
    tiles[p].panel = {data, data + n_groups * kTileBytes};
    UnpackPanel<Blocks>(places[p].rows, n_blocks, tiles[p].panel);
  }
  Int8Columns<Dots, kPanelRows, kPanels>(tiles, places, w, packed, n_rows, n,
                                         out);
}

template <class Blocks>
void MatmulInt8(const WeightMatrix& w, const std::byte* packed, int n_rows,
                std::int64_t n_begin, std::int64_t n_end,
                const MatmulOutput& out, std::byte* scratch) {
  constexpr bool kInRegisters =
      std::is_same_v<Blocks, Q8Blocks> || std::is_same_v<Blocks, Q4Blocks>;
  if (n_rows <= kStreamRows || w.n_out < kLanes) {
    if constexpr (kInRegisters) {
      Int8Stream<Blocks>(w, packed, n_rows, n_begin, n_end, out);
    } else if (n_rows == 1) {
      Int8FusedRow<Blocks>(w, packed, n_begin, n_end, out);
    } else {
      Int8Slices<Blocks>(w, packed, n_rows, n_begin, n_end, out);
    }
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

std::size_t Int8ScratchBytes(DType dtype, std::int64_t n_in, int n_rows) {
  if (n_rows <= kStreamRows) return 0;
  const std::int64_t group_bytes = WithBlocks(dtype, [](auto blocks) {
    return kPanelGroupBytes<typename decltype(blocks)::Dots>;
  });
  return static_cast<std::size_t>(kPanelCount * (n_in / kGroup) * group_bytes);
}
