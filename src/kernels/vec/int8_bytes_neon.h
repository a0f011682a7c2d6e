// The byte vector of both Arm tables. Contracts: vec/int8_scalar.h.

inline constexpr int kStreamRows = 4;
inline constexpr int kPanelRows = 4;
inline constexpr int kPanelCount = 1;

struct Bytes64 {
  uint8x16_t v[4];
};

HEARTH_INLINE Bytes64 LoadBytes64(const std::byte* p) {
  Bytes64 r;
  HEARTH_QUARTERS(LoadBytes16(p + 16 * q));
}
HEARTH_INLINE void StoreBytes64(std::byte* p, Bytes64 a) {
  auto* out = reinterpret_cast<std::uint8_t*>(p);
  for (int q = 0; q < 4; ++q) vst1q_u8(out + 16 * q, a.v[q]);
}
HEARTH_INLINE Bytes64 LoadQuarters(const TileRows& rows, int i, int offset) {
  Bytes64 r;
  HEARTH_QUARTERS(LoadBytes16(rows.Row(i + 4 * q) + offset));
}
HEARTH_INLINE void Transpose4(Bytes64* t) {
  for (int q = 0; q < 4; ++q) {
    const uint32x4_t a = vreinterpretq_u32_u8(t[0].v[q]);
    const uint32x4_t b = vreinterpretq_u32_u8(t[1].v[q]);
    const uint32x4_t c = vreinterpretq_u32_u8(t[2].v[q]);
    const uint32x4_t d = vreinterpretq_u32_u8(t[3].v[q]);
    const uint64x2_t ab_even = vreinterpretq_u64_u32(vtrn1q_u32(a, b));
    const uint64x2_t ab_odd = vreinterpretq_u64_u32(vtrn2q_u32(a, b));
    const uint64x2_t cd_even = vreinterpretq_u64_u32(vtrn1q_u32(c, d));
    const uint64x2_t cd_odd = vreinterpretq_u64_u32(vtrn2q_u32(c, d));
    t[0].v[q] = vreinterpretq_u8_u64(vtrn1q_u64(ab_even, cd_even));
    t[1].v[q] = vreinterpretq_u8_u64(vtrn1q_u64(ab_odd, cd_odd));
    t[2].v[q] = vreinterpretq_u8_u64(vtrn2q_u64(ab_even, cd_even));
    t[3].v[q] = vreinterpretq_u8_u64(vtrn2q_u64(ab_odd, cd_odd));
  }
}
HEARTH_INLINE Bytes64 LowNibbles(Bytes64 a) {
  Bytes64 r;
  HEARTH_QUARTERS(vandq_u8(a.v[q], vdupq_n_u8(15)));
}
HEARTH_INLINE Bytes64 HighNibbles(Bytes64 a) {
  Bytes64 r;
  HEARTH_QUARTERS(vshrq_n_u8(a.v[q], 4));
}

template <unsigned kFrom, unsigned kCount, unsigned kTo>
HEARTH_INLINE uint8x16_t MoveBits(uint8x16_t v) {
  constexpr auto kMask = static_cast<std::uint8_t>((1u << kCount) - 1u);
  if constexpr (kFrom > 0) v = vshrq_n_u8(v, kFrom);
  v = vandq_u8(v, vdupq_n_u8(kMask));
  if constexpr (kTo > 0) v = vshlq_n_u8(v, kTo);
  return v;
}
template <unsigned kFrom, unsigned kCount, unsigned kTo>
HEARTH_INLINE Bytes64 MoveBits(Bytes64 a) {
  Bytes64 r;
  HEARTH_QUARTERS((MoveBits<kFrom, kCount, kTo>(a.v[q])));
}
HEARTH_INLINE Bytes64 OrBytes(Bytes64 a, Bytes64 b) {
  Bytes64 r;
  HEARTH_QUARTERS(vorrq_u8(a.v[q], b.v[q]));
}
HEARTH_INLINE Bytes64 LookUp16(const std::int8_t* table, Bytes64 codes) {
  const uint8x16_t values = vreinterpretq_u8_s8(vld1q_s8(table));
  Bytes64 r;
  HEARTH_QUARTERS(vqtbl1q_u8(values, codes.v[q]));
}
template <int kNibble>
HEARTH_INLINE Bytes64 SpreadNibble(Bytes64 a) {
  constexpr std::uint32_t kAll = 0x01010101;
  constexpr std::uint32_t kByte = kNibble / 2 * kAll;
  constexpr std::uint32_t kFrom[4] = {kByte, kByte + 4 * kAll, kByte + 8 * kAll,
                                      kByte + 12 * kAll};
  const uint8x16_t from = vreinterpretq_u8_u32(vld1q_u32(kFrom));
  const uint8x16_t bits = vreinterpretq_u8_u32(
      vdupq_n_u32(kNibble % 2 ? 0x80402010u : 0x08040201u));
  Bytes64 r;
  HEARTH_QUARTERS(
      vandq_u8(vtstq_u8(vqtbl1q_u8(a.v[q], from), bits), vdupq_n_u8(16)));
}
// The 4-byte units, shifted right.
template <int kBits>
HEARTH_INLINE uint32x4_t UnitsFrom(uint8x16_t v) {
  const uint32x4_t units = vreinterpretq_u32_u8(v);
  if constexpr (kBits > 0) return vshrq_n_u32(units, kBits);
  return units;
}
template <int kByte>
HEARTH_INLINE Ints UnitByte(Bytes64 a) {
  Ints r;
  HEARTH_QUARTERS(vreinterpretq_s32_u32(
      vandq_u32(UnitsFrom<8 * kByte>(a.v[q]), vdupq_n_u32(255))));
}
template <int kByte>
HEARTH_INLINE Ints UnitSignedByte(Bytes64 a) {
  Ints r;
  HEARTH_QUARTERS(vshrq_n_s32(
      vshlq_n_s32(vreinterpretq_s32_u8(a.v[q]), 24 - 8 * kByte), 24));
}
template <int kHalf>
HEARTH_INLINE Floats UnitHalf(Bytes64 a) {
  Floats r;
  HEARTH_QUARTERS(vcvt_f32_f16(
      vreinterpret_f16_u16(vmovn_u32(UnitsFrom<16 * kHalf>(a.v[q])))));
}

#undef HEARTH_QUARTERS

// Unsigned codes are below 128, so that they are signed ones, too; every
// processor multiplies signed bytes as they are.
HEARTH_INLINE Bytes64 PrepareSigned(Bytes64 codes) { return codes; }
HEARTH_INLINE Ints StartSigned(std::int32_t /*offset_start*/) {
  return SplatInts(0);
}
