// The block formats of 256 values (block_formats.inl says what a struct is).
// Scales are decoded for sixteen rows at once, one row a lane; their products
// with the block's f16 are exact.

template <int kByte>
HEARTH_INLINE Floats UnitByteFloats(Bytes64 a) {
  return ToFloats(UnitByte<kByte>(a));
}

// Q4_K and Q5_K begin alike: f16 d, f16 dmin, twelve bytes with eight scales
// and eight minimums of six bits.
template <class Out>
HEARTH_INLINE void UnpackSixBitScales(const TileRows& rows, Out& out) {
  Bytes64 head[4];
  LoadUnits16(rows, 0, head);
  const Floats d = UnitHalf<0>(head[0]);
  const Floats dmin = UnitHalf<1>(head[0]);
  // Four scales or minimums a unit.
  const Bytes64 scales[2] = {
      MoveBits<0, 6, 0>(head[1]),
      OrBytes(MoveBits<0, 4, 0>(head[3]), MoveBits<6, 2, 4>(head[1]))};
  const Bytes64 minimums[2] = {
      MoveBits<0, 6, 0>(head[2]),
      OrBytes(MoveBits<4, 4, 0>(head[3]), MoveBits<6, 2, 4>(head[2]))};
  ForConstants<8>([&](auto j) {
    constexpr int kGroup8 = decltype(j)::value;
    const Floats scale = UnitByteFloats<kGroup8 % 4>(scales[kGroup8 / 4]);
    const Floats minimum = UnitByteFloats<kGroup8 % 4>(minimums[kGroup8 / 4]);
    out.PutScale(kGroup8, 0, Mul(d, scale));
    out.PutScale(kGroup8, 1, Mul(dmin, minimum));
  });
}

struct Q4KBlocks {
  using Dots = UnsignedDots<false, true>;
  static constexpr std::int64_t kBytes = 144;  // 16 of scales, 128 of nibbles
  static constexpr int kGroups = 8;

  template <class Out>
  HEARTH_NOINLINE static void Unpack(const TileRows& rows, Out& out) {
    UnpackSixBitScales(rows, out);
    for (int pair = 0; pair < 4; ++pair) {
      Bytes64 both[kTileVectors];
      LoadUnits32(rows, 16 + 32 * pair, both);
      Bytes64 tile[kTileVectors];
      HEARTH_UNROLL
      for (int j = 0; j < kTileVectors; ++j) tile[j] = LowNibbles(both[j]);
      out.Put(2 * pair, tile);
      HEARTH_UNROLL
      for (int j = 0; j < kTileVectors; ++j) tile[j] = HighNibbles(both[j]);
      out.Put(2 * pair + 1, tile);
    }
  }
};

struct Q5KBlocks {
  using Dots = UnsignedDots<false, true>;
  static constexpr std::int64_t kBytes = 176;  // scales, 32 of bits, nibbles
  static constexpr int kGroups = 8;

  template <class Out>
  HEARTH_NOINLINE static void Unpack(const TileRows& rows, Out& out) {
    UnpackSixBitScales(rows, out);
    Bytes64 bits[kTileVectors];
    LoadUnits32(rows, 16, bits);
    ForConstants<4>([&](auto p) {
      constexpr unsigned kPair = decltype(p)::value;
      Bytes64 both[kTileVectors];
      LoadUnits32(rows, 48 + 32 * kPair, both);
      Bytes64 tile[kTileVectors];
      HEARTH_UNROLL
      for (int j = 0; j < kTileVectors; ++j) {
        tile[j] =
            OrBytes(LowNibbles(both[j]), MoveBits<2 * kPair, 1, 4>(bits[j]));
      }
      out.Put(2 * kPair, tile);
      HEARTH_UNROLL
      for (int j = 0; j < kTileVectors; ++j) {
        tile[j] = OrBytes(HighNibbles(both[j]),
                          MoveBits<2 * kPair + 1, 1, 4>(bits[j]));
      }
      out.Put(2 * kPair + 1, tile);
    });
  }
};

struct Q6KBlocks {
  using Dots = UnsignedDots<true, false>;
  // 128 of low nibbles, 64 of high pairs, 16 int8 scales, f16 d.
  static constexpr std::int64_t kBytes = 210;
  static constexpr int kGroups = 8;

  template <class Out>
  HEARTH_NOINLINE static void Unpack(const TileRows& rows, Out& out) {
    Bytes64 scales[4];
    LoadUnits16(rows, 192, scales);
    const Floats d = GatherF16(rows.At(208));
    ForConstants<16>([&](auto s) {
      constexpr int kScale = decltype(s)::value;
      out.PutScale(
          kScale / 2, kScale % 2,
          Mul(d, ToFloats(UnitSignedByte<kScale % 4>(scales[kScale / 4]))));
    });
    for (int half = 0; half < 2; ++half) {
      Bytes64 high[kTileVectors];
      LoadUnits32(rows, 128 + 32 * half, high);
      Bytes64 low[2][kTileVectors];
      LoadUnits32(rows, 64 * half, low[0]);
      LoadUnits32(rows, 64 * half + 32, low[1]);
      ForConstants<4>([&](auto q) {
        constexpr unsigned kQuarter = decltype(q)::value;
        Bytes64 tile[kTileVectors];
        HEARTH_UNROLL
        for (int j = 0; j < kTileVectors; ++j) {
          const Bytes64 both = low[kQuarter % 2][j];
          tile[j] = OrBytes(kQuarter < 2 ? LowNibbles(both) : HighNibbles(both),
                            MoveBits<2 * kQuarter, 2, 4>(high[j]));
        }
        out.Put(4 * half + static_cast<int>(kQuarter), tile);
      });
    }
  }
};

struct Q3KBlocks {
  using Dots = UnsignedDots<true, false>;
  // 32 of high bits, 64 of low pairs, 12 of six-bit scales, f16 d.
  static constexpr std::int64_t kBytes = 110;
  static constexpr int kGroups = 8;

  template <class Out>
  HEARTH_INLINE static void UnpackScales(const TileRows& rows, Out& out) {
    Bytes64 tail[4];  // from two bytes before the scales to the end
    LoadUnits16(rows, 94, tail);
    const Floats d = UnitHalf<1>(tail[3]);
    ForConstants<16>([&](auto s) {
      constexpr int kScale = decltype(s)::value;
      constexpr int kLow = 2 + kScale % 8;
      constexpr int kHigh = 10 + kScale % 4;
      const Bytes64 low = MoveBits<kScale / 8 * 4, 4, 0>(tail[kLow / 4]);
      const Bytes64 high = MoveBits<kScale / 4 * 2, 2, 4>(tail[kHigh / 4]);
      const Ints code =
          AddInts(UnitByte<kLow % 4>(low), UnitByte<kHigh % 4>(high));
      out.PutScale(kScale / 2, kScale % 2,
                   Mul(d, ToFloats(AddInts(code, SplatInts(-32)))));
    });
  }

  template <class Out>
  HEARTH_NOINLINE static void Unpack(const TileRows& rows, Out& out) {
    UnpackScales(rows, out);
    Bytes64 bits[kTileVectors];
    LoadUnits32(rows, 0, bits);
    ForConstants<2>([&](auto h) {
      constexpr unsigned kHalf = decltype(h)::value;
      Bytes64 pairs[kTileVectors];
      LoadUnits32(rows, 32 + 32 * kHalf, pairs);
      ForConstants<4>([&](auto q) {
        constexpr unsigned kQuarter = decltype(q)::value;
        Bytes64 tile[kTileVectors];
        HEARTH_UNROLL
        for (int j = 0; j < kTileVectors; ++j) {
          tile[j] = OrBytes(MoveBits<2 * kQuarter, 2, 0>(pairs[j]),
                            MoveBits<4 * kHalf + kQuarter, 1, 2>(bits[j]));
        }
        out.Put(4 * kHalf + kQuarter, tile);
      });
    });
  }
};

struct Q2KBlocks {
  using Dots = UnsignedDots<true, true>;
  // 16 of scale and minimum nibbles, 64 of pairs, f16 d, f16 dmin.
  static constexpr std::int64_t kBytes = 84;
  static constexpr int kGroups = 8;

  template <class Out>
  HEARTH_NOINLINE static void Unpack(const TileRows& rows, Out& out) {
    Bytes64 tail[4];
    LoadUnits16(rows, 68, tail);
    const Floats d = UnitHalf<0>(tail[3]);
    const Floats dmin = UnitHalf<1>(tail[3]);
    Bytes64 head[4];
    LoadUnits16(rows, 0, head);
    ForConstants<16>([&](auto s) {
      constexpr int kScale = decltype(s)::value;
      const Bytes64 both = head[kScale / 4];
      const Floats scale = UnitByteFloats<kScale % 4>(LowNibbles(both));
      const Floats minimum = UnitByteFloats<kScale % 4>(HighNibbles(both));
      out.PutScale(kScale / 2, kScale % 2, Mul(d, scale));
      out.PutScale(kScale / 2, 2 + kScale % 2, Mul(dmin, minimum));
    });
    for (int half = 0; half < 2; ++half) {
      Bytes64 pairs[kTileVectors];
      LoadUnits32(rows, 16 + 32 * half, pairs);
      ForConstants<4>([&](auto q) {
        constexpr unsigned kQuarter = decltype(q)::value;
        Bytes64 tile[kTileVectors];
        HEARTH_UNROLL
        for (int j = 0; j < kTileVectors; ++j) {
          tile[j] = MoveBits<2 * kQuarter, 2, 0>(pairs[j]);
        }
        out.Put(4 * half + static_cast<int>(kQuarter), tile);
      });
    }
  }
};

struct Iq4XsBlocks {
  using Dots = SignedDots;
  // f16 d, 16 bits of high scale pairs, 4 of low scale nibbles, nibbles.
  static constexpr std::int64_t kBytes = 136;
  static constexpr int kGroups = 8;

  template <class Out>
  HEARTH_NOINLINE static void Unpack(const TileRows& rows, Out& out) {
    Bytes64 head[4];
    LoadUnits16(rows, 0, head);
    const Floats d = UnitHalf<0>(head[0]);
    ForConstants<8>([&](auto g) {
      constexpr int kIndex = decltype(g)::value;
      const Bytes64 low = MoveBits<kIndex % 2 * 4, 4, 0>(head[1]);
      const Bytes64 high = MoveBits<kIndex % 4 * 2, 2, 4>(head[0]);
      const Ints code =
          AddInts(UnitByte<kIndex / 2>(low), UnitByte<2 + kIndex / 4>(high));
      out.PutScale(kIndex, 0, Mul(d, ToFloats(AddInts(code, SplatInts(-32)))));
    });
    for (int group = 0; group < kGroups; ++group) {
      Bytes64 tile[kTileVectors];
      Iq4NlBlocks::UnpackTile(rows, 8 + 16 * group, tile);
      out.Put(group, tile);
    }
  }
};

// Formats whose blocks tensor/codebook spells out, row by row: their look-ups
// are bytes in memory on every instruction set.
template <DType kType, std::int64_t kBlockBytes, bool kHalfScales>
struct SpelledBlocks {
  using Dots = UnsignedDots<kHalfScales, false>;
  static constexpr std::int64_t kBytes = kBlockBytes;
  static constexpr int kGroups = 8;

  template <class Out>
  HEARTH_NOINLINE static void Unpack(const TileRows& rows, Out& out) {
    SpelledBlock blocks[kLanes];
    for (int r = 0; r < kLanes; ++r) SpellOut(kType, rows.Row(r), blocks[r]);
    constexpr int kStep = kHalfScales ? 1 : 2;
    for (int s = 0; s < 16; s += kStep) {
      alignas(64) float scales[kLanes];
      for (int r = 0; r < kLanes; ++r) scales[r] = blocks[r].scales[s];
      out.PutScale(s / 2, s % 2, Load(scales));
    }
    const TileRows codes(reinterpret_cast<const std::byte*>(blocks[0].codes),
                         sizeof(SpelledBlock));
    for (int group = 0; group < kGroups; ++group) {
      Bytes64 tile[kTileVectors];
      LoadUnits32(codes, 32 * group, tile);
      out.Put(group, tile);
    }
  }
};

// Calls f with the struct of a block format.
template <class F>
auto WithBlocks(DType dtype, const F& f) {
  switch (dtype) {
    case DType::kQ4_0:
      return f(Q4Blocks());
    case DType::kQ4_1:
      return f(Q41Blocks());
    case DType::kQ5_0:
      return f(Q50Blocks());
    case DType::kQ5_1:
      return f(Q51Blocks());
    case DType::kQ2_K:
      return f(Q2KBlocks());
    case DType::kQ3_K:
      return f(Q3KBlocks());
    case DType::kQ4_K:
      return f(Q4KBlocks());
    case DType::kQ5_K:
      return f(Q5KBlocks());
    case DType::kQ6_K:
      return f(Q6KBlocks());
    case DType::kIQ4_NL:
      return f(Iq4NlBlocks());
    case DType::kIQ4_XS:
      return f(Iq4XsBlocks());
    case DType::kMXFP4:
      return f(Mxfp4Blocks());
    case DType::kIQ2_XXS:
      return f(SpelledBlocks<DType::kIQ2_XXS, 66, false>());
    case DType::kIQ2_XS:
      return f(SpelledBlocks<DType::kIQ2_XS, 74, true>());
    case DType::kIQ2_S:
      return f(SpelledBlocks<DType::kIQ2_S, 82, true>());
    case DType::kIQ3_XXS:
      return f(SpelledBlocks<DType::kIQ3_XXS, 98, false>());
    case DType::kIQ3_S:
      return f(SpelledBlocks<DType::kIQ3_S, 110, false>());
    case DType::kIQ1_S:
      return f(SpelledBlocks<DType::kIQ1_S, 50, false>());
    case DType::kIQ1_M:
      return f(SpelledBlocks<DType::kIQ1_M, 56, true>());
    case DType::kTQ1_0:
      return f(SpelledBlocks<DType::kTQ1_0, 54, false>());
    case DType::kTQ2_0:
      return f(SpelledBlocks<DType::kTQ2_0, 66, false>());
    case DType::kQ8_0:
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kTgInt4:
      break;  // REQUIRES: IsBlockQuantised
  }
  return f(Q8Blocks());
}
