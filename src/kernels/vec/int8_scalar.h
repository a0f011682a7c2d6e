// Exact int8 dot products for sixteen outputs at once, in plain C++; the other
// int8_*.h give the same integers.
//
// A tile is 16 outputs x 32 inputs of one-byte codes as eight Bytes64: vector j
// holds inputs 4j..4j+3 of output n in its bytes 4n..4n+3, so that a 4-byte dot
// product leaves one int32 an output and needs no sum across lanes.

// Rows that share a tile streamed from the file; rows and panels (of sixteen
// outputs) that share registers when the tiles come from an unpacked panel.
inline constexpr int kStreamRows = 1;
inline constexpr int kPanelRows = 1;
inline constexpr int kPanelCount = 1;

struct Bytes64 {
  std::uint8_t v[64];
};

HEARTH_INLINE Bytes64 LoadBytes64(const std::byte* p) {
  Bytes64 r;
  std::memcpy(r.v, p, sizeof(r.v));
  return r;
}
HEARTH_INLINE void StoreBytes64(std::byte* p, Bytes64 a) {
  std::memcpy(p, a.v, sizeof(a.v));
}
// 16 bytes, from `offset` on, of each of rows i, i + 4, i + 8 and i + 12.
HEARTH_INLINE Bytes64 LoadQuarters(const TileRows& rows, int i, int offset) {
  Bytes64 r;
  for (int q = 0; q < 4; ++q) {
    std::memcpy(r.v + 16 * q, rows.Row(i + 4 * q) + offset, 16);
  }
  return r;
}
// Within each 16-byte lane: 32-bit unit j of vector i and unit i of vector j
// change places. With LoadQuarters of rows 0, 1, 2, 3 this makes tile vectors.
HEARTH_INLINE void Transpose4(Bytes64* t) {
  for (int lane = 0; lane < 64; lane += 16) {
    for (int i = 0; i < 4; ++i) {
      for (int j = i + 1; j < 4; ++j) {
        for (int byte = 0; byte < 4; ++byte) {
          std::swap(t[i].v[lane + 4 * j + byte], t[j].v[lane + 4 * i + byte]);
        }
      }
    }
  }
}
HEARTH_INLINE Bytes64 LowNibbles(Bytes64 a) {
  for (std::uint8_t& byte : a.v) byte = byte & 15;
  return a;
}
HEARTH_INLINE Bytes64 HighNibbles(Bytes64 a) {
  for (std::uint8_t& byte : a.v) byte = static_cast<std::uint8_t>(byte >> 4);
  return a;
}

// --- Unpacking block formats -------------------------------------------------
// Bits [kFrom, kFrom + kCount) of every byte, moved to kTo; zeros around them.
template <unsigned kFrom, unsigned kCount, unsigned kTo>
HEARTH_INLINE Bytes64 MoveBits(Bytes64 a) {
  constexpr unsigned kMask = (1u << kCount) - 1u;
  for (std::uint8_t& byte : a.v) {
    byte = static_cast<std::uint8_t>(((byte >> kFrom) & kMask) << kTo);
  }
  return a;
}
HEARTH_INLINE Bytes64 OrBytes(Bytes64 a, Bytes64 b) {
  for (int i = 0; i < 64; ++i) a.v[i] = a.v[i] | b.v[i];
  return a;
}
// table[code] for codes 0..15.
HEARTH_INLINE Bytes64 LookUp16(const std::int8_t* table, Bytes64 codes) {
  for (std::uint8_t& byte : codes.v) {
    byte = static_cast<std::uint8_t>(table[byte]);
  }
  return codes;
}
// Of every 4-byte unit: byte i is 16 where bit 4 * kNibble + i is set, else 0.
template <int kNibble>
HEARTH_INLINE Bytes64 SpreadNibble(Bytes64 a) {
  Bytes64 r;
  for (int i = 0; i < 64; ++i) {
    const int bit = 4 * (kNibble % 2) + i % 4;
    const int byte = a.v[i / 4 * 4 + kNibble / 2];
    r.v[i] = static_cast<std::uint8_t>(((byte >> bit) & 1) << 4);
  }
  return r;
}
// Lane n from the 4-byte unit n: its byte kByte, unsigned or signed, or the f16
// in its half kHalf.
template <int kByte>
HEARTH_INLINE Ints UnitByte(Bytes64 a) {
  Ints r;
  for (int n = 0; n < kLanes; ++n) r.v[n] = a.v[4 * n + kByte];
  return r;
}
template <int kByte>
HEARTH_INLINE Ints UnitSignedByte(Bytes64 a) {
  Ints r;
  for (int n = 0; n < kLanes; ++n) {
    r.v[n] = static_cast<std::int8_t>(a.v[4 * n + kByte]);
  }
  return r;
}
template <int kHalf>
HEARTH_INLINE Floats UnitHalf(Bytes64 a) {
  Floats r;
  for (int n = 0; n < kLanes; ++n) {
    const int low = a.v[4 * n + 2 * kHalf];
    const int high = a.v[4 * n + 2 * kHalf + 1];
    r.v[n] = ToFloat(F16{static_cast<std::uint16_t>(low | high << 8)});
  }
  return r;
}

// Unsigned codes 0..127 times activations -127..127, added to acc.
HEARTH_INLINE Ints DotUnsigned(Ints acc, Bytes64 codes, const std::int8_t* x) {
  for (int n = 0; n < kLanes; ++n) {
    for (int i = 0; i < 4; ++i) acc.v[n] += int{codes.v[4 * n + i]} * x[i];
  }
  return acc;
}

// Signed codes, brought into the form that DotSigned takes. `offset_start` is
// -128 * sum(x): where the form is code + 128, DotSigned has to start there.
HEARTH_INLINE Bytes64 PrepareSigned(Bytes64 codes) { return codes; }
HEARTH_INLINE Ints StartSigned(std::int32_t /*offset_start*/) {
  return SplatInts(0);
}
HEARTH_INLINE Ints DotSigned(Ints acc, Bytes64 codes, const std::int8_t* x) {
  for (int n = 0; n < kLanes; ++n) {
    for (int i = 0; i < 4; ++i) {
      acc.v[n] += static_cast<std::int8_t>(codes.v[4 * n + i]) * x[i];
    }
  }
  return acc;
}
