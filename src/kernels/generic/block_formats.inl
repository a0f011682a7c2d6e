// Block formats of 32 values, unpacked for the int8 matmul: what a block gives
// of sixteen rows at once. The K formats follow in k_formats.inl; layouts:
// docs/formats/tensor-types.md.
//
// A further format is one more struct:
//   Dots     which dot product and which sums it takes
//   kBytes   bytes of a block
//   kGroups  groups of 32 values in a block
//   Unpack   hands the scales of a block, then its tiles in rising order, to a
//            panel or straight to the dot products

inline constexpr int kTileVectors = 8;
inline constexpr std::int64_t kTileBytes = 64 * kTileVectors;

// --- Dot products of a tile -------------------------------------------------
// kHalves: weight scales span 16 values, so the halves of a tile are summed
// apart.
// kMinimums: a weight is scale * code - minimum.
struct SignedDots {  // codes -128..127
  static constexpr bool kHalves = false;
  static constexpr bool kMinimums = false;
  HEARTH_INLINE static Ints Start(std::int32_t start) {
    return StartSigned(start);
  }
  HEARTH_INLINE static Ints Dot(Ints acc, Bytes64 codes, const std::int8_t* x) {
    return DotSigned(acc, codes, x);
  }
};

template <bool kHalfScales, bool kWithMinimums>
struct UnsignedDots {  // codes 0..127
  static constexpr bool kHalves = kHalfScales;
  static constexpr bool kMinimums = kWithMinimums;
  HEARTH_INLINE static Ints Start(std::int32_t start) {
    return SplatInts(start);
  }
  HEARTH_INLINE static Ints Dot(Ints acc, Bytes64 codes, const std::int8_t* x) {
    return DotUnsigned(acc, codes, x);
  }
};

// Vectors of sixteen floats that go with a tile: the scales (of both halves),
// then the minimums.
template <class Dots>
inline constexpr int kScaleVectors = (Dots::kHalves ? 2 : 1) *
                                     (Dots::kMinimums ? 2 : 1);

template <class Dots>
inline constexpr std::int64_t kPanelGroupBytes =
    kTileBytes + 64 * kScaleVectors<Dots>;

// Tiles and scales of consecutive groups, unpacked.
template <class Dots>
struct Panel {
  std::byte* tiles;   // [group][kTileBytes]
  std::byte* scales;  // [group][kScaleVectors][16] float

  Panel From(std::int64_t group) const {
    return {tiles + group * kTileBytes,
            scales + group * 64 * kScaleVectors<Dots>};
  }
  HEARTH_INLINE void Put(int group, const Bytes64* tile) const {
    HEARTH_UNROLL
    for (int j = 0; j < kTileVectors; ++j) {
      StoreBytes64(tiles + group * kTileBytes + 64 * j, tile[j]);
    }
  }
  HEARTH_INLINE void PutScale(int group, int i, Floats scale) const {
    Store(reinterpret_cast<float*>(scales) +
              (group * kScaleVectors<Dots> + i) * kLanes,
          scale);
  }
};

// --- Loading -----------------------------------------------------------------
// t[j]: bytes 4j..4j+3, from `offset` on, of sixteen rows, as units.
HEARTH_INLINE void LoadUnits16(const TileRows& rows, int offset, Bytes64* t) {
  HEARTH_UNROLL
  for (int i = 0; i < 4; ++i) t[i] = LoadQuarters(rows, i, offset);
  Transpose4(t);
}
HEARTH_INLINE void LoadUnits32(const TileRows& rows, int offset, Bytes64* t) {
  LoadUnits16(rows, offset, t);
  LoadUnits16(rows, offset + 16, t + 4);
}
// 32 nibbles in 16 bytes: the low halves of all, then the high halves.
HEARTH_INLINE void LoadNibbles32(const TileRows& rows, int offset,
                                 Bytes64* tile) {
  Bytes64 both[4];
  LoadUnits16(rows, offset, both);
  HEARTH_UNROLL
  for (int i = 0; i < 4; ++i) {
    tile[i] = LowNibbles(both[i]);
    tile[4 + i] = HighNibbles(both[i]);
  }
}

// Calls body(integral_constant<int, 0>) ... for each of kCount.
template <class Body, int... kIndex>
HEARTH_INLINE void ForConstants(std::integer_sequence<int, kIndex...>,
                                const Body& body) {
  (body(std::integral_constant<int, kIndex>()), ...);
}
template <int kCount, class Body>
HEARTH_INLINE void ForConstants(const Body& body) {
  ForConstants(std::make_integer_sequence<int, kCount>(), body);
}

// --- Formats -----------------------------------------------------------------
struct Q8Blocks {
  using Dots = SignedDots;
  static constexpr std::int64_t kBytes = 34;  // f16 scale, 32 int8
  static constexpr int kGroups = 1;

  HEARTH_INLINE static Floats UnpackTile(const TileRows& rows, Bytes64* tile) {
    LoadUnits32(rows, 2, tile);
    HEARTH_UNROLL
    for (int i = 0; i < kTileVectors; ++i) tile[i] = PrepareSigned(tile[i]);
    return GatherF16(rows);
  }
  template <class Out>
  HEARTH_INLINE static void Unpack(const TileRows& rows, Out& out) {
    Bytes64 tile[kTileVectors];
    out.PutScale(0, 0, UnpackTile(rows, tile));
    out.Put(0, tile);
  }
};

struct Q4Blocks {
  using Dots = UnsignedDots<false, false>;
  static constexpr std::int64_t kBytes = 18;  // f16 scale, 16 bytes of nibbles
  static constexpr int kGroups = 1;

  HEARTH_INLINE static Floats UnpackTile(const TileRows& rows, Bytes64* tile) {
    LoadNibbles32(rows, 2, tile);
    return GatherF16(rows);
  }
  template <class Out>
  HEARTH_INLINE static void Unpack(const TileRows& rows, Out& out) {
    Bytes64 tile[kTileVectors];
    out.PutScale(0, 0, UnpackTile(rows, tile));
    out.Put(0, tile);
  }
};

// A minimum is what is subtracted, so Q4_1 and Q5_1 give theirs negated.
HEARTH_INLINE Floats Negated(Floats a) { return Mul(a, Splat(-1.0f)); }

struct Q41Blocks {
  using Dots = UnsignedDots<false, true>;
  static constexpr std::int64_t kBytes = 20;  // f16 scale, f16 m, nibbles
  static constexpr int kGroups = 1;

  template <class Out>
  HEARTH_INLINE static void Unpack(const TileRows& rows, Out& out) {
    Bytes64 head[4];
    LoadUnits16(rows, 0, head);
    out.PutScale(0, 0, UnitHalf<0>(head[0]));
    out.PutScale(0, 1, Negated(UnitHalf<1>(head[0])));
    Bytes64 tile[kTileVectors];
    LoadNibbles32(rows, 4, tile);
    out.Put(0, tile);
  }
};

// Adds the fifth bits, 32 in one unit a row.
HEARTH_INLINE void AddFifthBits(Bytes64 bits, Bytes64* tile) {
  ForConstants<kTileVectors>([&](auto j) {
    tile[j] = OrBytes(tile[j], SpreadNibble<decltype(j)::value>(bits));
  });
}

struct Q50Blocks {
  using Dots = UnsignedDots<false, false>;
  static constexpr std::int64_t kBytes = 22;  // f16 scale, u32 bits, nibbles
  static constexpr int kGroups = 1;

  template <class Out>
  HEARTH_INLINE static void Unpack(const TileRows& rows, Out& out) {
    Bytes64 head[4];
    LoadUnits16(rows, 2, head);
    out.PutScale(0, 0, GatherF16(rows));
    Bytes64 tile[kTileVectors];
    LoadNibbles32(rows, 6, tile);
    AddFifthBits(head[0], tile);
    out.Put(0, tile);
  }
};

struct Q51Blocks {
  using Dots = UnsignedDots<false, true>;
  static constexpr std::int64_t kBytes = 24;  // f16 scale, f16 m, bits, nibbles
  static constexpr int kGroups = 1;

  template <class Out>
  HEARTH_INLINE static void Unpack(const TileRows& rows, Out& out) {
    Bytes64 head[4];
    LoadUnits16(rows, 0, head);
    out.PutScale(0, 0, UnitHalf<0>(head[0]));
    out.PutScale(0, 1, Negated(UnitHalf<1>(head[0])));
    Bytes64 tile[kTileVectors];
    LoadNibbles32(rows, 8, tile);
    AddFifthBits(head[1], tile);
    out.Put(0, tile);
  }
};

struct Iq4NlBlocks {
  using Dots = SignedDots;
  static constexpr std::int64_t kBytes = 18;  // f16 scale, nibbles
  static constexpr int kGroups = 1;

  HEARTH_INLINE static void UnpackTile(const TileRows& rows, int offset,
                                       Bytes64* tile) {
    LoadNibbles32(rows, offset, tile);
    HEARTH_UNROLL
    for (int j = 0; j < kTileVectors; ++j) {
      tile[j] = PrepareSigned(LookUp16(kIq4Values.data(), tile[j]));
    }
  }
  template <class Out>
  HEARTH_INLINE static void Unpack(const TileRows& rows, Out& out) {
    out.PutScale(0, 0, GatherF16(rows));
    Bytes64 tile[kTileVectors];
    UnpackTile(rows, 2, tile);
    out.Put(0, tile);
  }
};

struct Mxfp4Blocks {
  using Dots = UnsignedDots<false, false>;
  static constexpr std::int64_t kBytes = 17;  // exponent, nibbles
  static constexpr int kGroups = 1;

  // Doubled values plus 12, so that they are unsigned.
  static constexpr std::int8_t kShifted[16] = {12, 13, 14, 15, 16, 18, 20, 24,
                                               12, 11, 10, 9,  8,  6,  4,  0};

  HEARTH_INLINE static Floats PowerOfTwo(Ints exponent) {
    return AsFloats(ShiftLeft<23>(AddInts(exponent, SplatInts(127 - 64))));
  }
  // 2^(e - 128) as a product of two, since the lowest are subnormal.
  HEARTH_INLINE static Floats Scale(Bytes64 head) {
    const Ints low = UnitByte<0>(MoveBits<1, 7, 0>(head));
    const Ints high = AddInts(low, UnitByte<0>(MoveBits<0, 1, 0>(head)));
    return Mul(PowerOfTwo(low), PowerOfTwo(high));
  }
  template <class Out>
  HEARTH_INLINE static void Unpack(const TileRows& rows, Out& out) {
    Bytes64 head[4];
    LoadUnits16(rows, 0, head);
    out.PutScale(0, 0, Scale(head[0]));
    Bytes64 tile[kTileVectors];
    LoadNibbles32(rows, 1, tile);
    HEARTH_UNROLL
    for (int j = 0; j < kTileVectors; ++j) {
      tile[j] = LookUp16(kShifted, tile[j]);
    }
    out.Put(0, tile);
  }
};
