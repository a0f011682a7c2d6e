// Exact int8 dot products as two ymm registers. Contracts: vec/int8_scalar.h.

inline constexpr int kStreamRows = 4;
inline constexpr int kPanelRows = 4;
inline constexpr int kPanelCount = 1;

struct Bytes64 {
  __m256i lo, hi;
};

HEARTH_INLINE __m256i LoadBytes32(const std::byte* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
HEARTH_INLINE Bytes64 LoadBytes64(const std::byte* p) {
  return {LoadBytes32(p), LoadBytes32(p + 32)};
}
HEARTH_INLINE void StoreBytes64(std::byte* p, Bytes64 a) {
  auto* out = reinterpret_cast<__m256i*>(p);
  _mm256_storeu_si256(out, a.lo);
  _mm256_storeu_si256(out + 1, a.hi);
}
HEARTH_INLINE Bytes64 LoadQuarters(const TileRows& rows, int i, int offset) {
  return {_mm256_set_m128i(LoadBytes16(rows.Row(i + 4) + offset),
                           LoadBytes16(rows.Row(i) + offset)),
          _mm256_set_m128i(LoadBytes16(rows.Row(i + 12) + offset),
                           LoadBytes16(rows.Row(i + 8) + offset))};
}
HEARTH_INLINE void Transpose4(__m256i& a, __m256i& b, __m256i& c, __m256i& d) {
  const __m256i ab_low = _mm256_unpacklo_epi32(a, b);
  const __m256i ab_high = _mm256_unpackhi_epi32(a, b);
  const __m256i cd_low = _mm256_unpacklo_epi32(c, d);
  const __m256i cd_high = _mm256_unpackhi_epi32(c, d);
  a = _mm256_unpacklo_epi64(ab_low, cd_low);
  b = _mm256_unpackhi_epi64(ab_low, cd_low);
  c = _mm256_unpacklo_epi64(ab_high, cd_high);
  d = _mm256_unpackhi_epi64(ab_high, cd_high);
}
HEARTH_INLINE void Transpose4(Bytes64* t) {
  Transpose4(t[0].lo, t[1].lo, t[2].lo, t[3].lo);
  Transpose4(t[0].hi, t[1].hi, t[2].hi, t[3].hi);
}
HEARTH_INLINE Bytes64 LowNibbles(Bytes64 a) {
  const __m256i fifteen = _mm256_set1_epi8(15);
  return {_mm256_and_si256(a.lo, fifteen), _mm256_and_si256(a.hi, fifteen)};
}
HEARTH_INLINE Bytes64 HighNibbles(Bytes64 a) {
  const __m256i fifteen = _mm256_set1_epi8(15);
  return {_mm256_and_si256(_mm256_srli_epi16(a.lo, 4), fifteen),
          _mm256_and_si256(_mm256_srli_epi16(a.hi, 4), fifteen)};
}

template <unsigned kFrom, unsigned kCount, unsigned kTo>
HEARTH_INLINE __m256i MoveBits(__m256i v) {
  constexpr auto kMask = static_cast<char>(((1u << kCount) - 1u) << kTo);
  if constexpr (kFrom > kTo) v = _mm256_srli_epi16(v, kFrom - kTo);
  if constexpr (kFrom < kTo) v = _mm256_slli_epi16(v, kTo - kFrom);
  return _mm256_and_si256(v, _mm256_set1_epi8(kMask));
}
template <unsigned kFrom, unsigned kCount, unsigned kTo>
HEARTH_INLINE Bytes64 MoveBits(Bytes64 a) {
  return {MoveBits<kFrom, kCount, kTo>(a.lo),
          MoveBits<kFrom, kCount, kTo>(a.hi)};
}
HEARTH_INLINE Bytes64 OrBytes(Bytes64 a, Bytes64 b) {
  return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)};
}
HEARTH_INLINE Bytes64 LookUp16(const std::int8_t* table, Bytes64 codes) {
  const __m256i values = _mm256_broadcastsi128_si256(
      LoadBytes16(reinterpret_cast<const std::byte*>(table)));
  return {_mm256_shuffle_epi8(values, codes.lo),
          _mm256_shuffle_epi8(values, codes.hi)};
}
template <int kNibble>
HEARTH_INLINE __m256i SpreadNibble(__m256i v) {
  constexpr int kAll = 0x01010101;
  constexpr int kByte = kNibble / 2 * kAll;
  const __m256i from = _mm256_broadcastsi128_si256(_mm_setr_epi32(
      kByte, kByte + 4 * kAll, kByte + 8 * kAll, kByte + 12 * kAll));
  const __m256i bits = _mm256_set1_epi32(
      static_cast<std::int32_t>(kNibble % 2 ? 0x80402010u : 0x08040201u));
  const __m256i chosen = _mm256_and_si256(_mm256_shuffle_epi8(v, from), bits);
  return _mm256_and_si256(_mm256_cmpeq_epi8(chosen, bits),
                          _mm256_set1_epi8(16));
}
template <int kNibble>
HEARTH_INLINE Bytes64 SpreadNibble(Bytes64 a) {
  return {SpreadNibble<kNibble>(a.lo), SpreadNibble<kNibble>(a.hi)};
}
template <unsigned kByte>
HEARTH_INLINE Ints UnitByte(Bytes64 a) {
  const __m256i byte = _mm256_set1_epi32(255);
  return {_mm256_and_si256(_mm256_srli_epi32(a.lo, 8 * kByte), byte),
          _mm256_and_si256(_mm256_srli_epi32(a.hi, 8 * kByte), byte)};
}
template <unsigned kByte>
HEARTH_INLINE Ints UnitSignedByte(Bytes64 a) {
  return {_mm256_srai_epi32(_mm256_slli_epi32(a.lo, 24 - 8 * kByte), 24),
          _mm256_srai_epi32(_mm256_slli_epi32(a.hi, 24 - 8 * kByte), 24)};
}
template <unsigned kHalf>
HEARTH_INLINE Floats UnitHalf(Bytes64 a) {
  const __m256i half = _mm256_set1_epi32(0xffff);
  const __m256i lo = _mm256_srli_epi32(a.lo, 16 * kHalf);
  const __m256i hi = _mm256_srli_epi32(a.hi, 16 * kHalf);
  // Packs within 128-bit lanes; the permutation puts the quarters in order.
  const __m256i halves =
      _mm256_permute4x64_epi64(_mm256_packus_epi32(_mm256_and_si256(lo, half),
                                                   _mm256_and_si256(hi, half)),
                               0xd8);
  return {_mm256_cvtph_ps(_mm256_castsi256_si128(halves)),
          _mm256_cvtph_ps(_mm256_extracti128_si256(halves, 1))};
}

// The 16-bit pair sums of maddubs saturate at 32,767. Both callers stay below:
// |a| <= 128 and |b| <= 127 give at most 2 * 128 * 127 = 32,512.
HEARTH_INLINE __m256i Dot4(__m256i acc, __m256i a, __m256i b) {
  const __m256i pairs = _mm256_maddubs_epi16(a, b);
  return _mm256_add_epi32(acc, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
HEARTH_INLINE Ints DotUnsigned(Ints acc, Bytes64 codes, const std::int8_t* x) {
  const __m256i four = _mm256_set1_epi32(LoadLe<std::int32_t>(x));
  return {Dot4(acc.lo, codes.lo, four), Dot4(acc.hi, codes.hi, four)};
}

// The code's sign moves to the activation, which is never -128.
HEARTH_INLINE Bytes64 PrepareSigned(Bytes64 codes) { return codes; }
HEARTH_INLINE Ints StartSigned(std::int32_t /*offset_start*/) {
  return SplatInts(0);
}
HEARTH_INLINE __m256i Dot4Signed(__m256i acc, __m256i codes, __m256i four) {
  return Dot4(acc, _mm256_abs_epi8(codes), _mm256_sign_epi8(four, codes));
}
HEARTH_INLINE Ints DotSigned(Ints acc, Bytes64 codes, const std::int8_t* x) {
  const __m256i four = _mm256_set1_epi32(LoadLe<std::int32_t>(x));
  return {Dot4Signed(acc.lo, codes.lo, four),
          Dot4Signed(acc.hi, codes.hi, four)};
}
