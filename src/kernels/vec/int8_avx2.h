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
