// The byte vector of both AVX-512 tables. Contracts: vec/int8_scalar.h.

// Streaming: eight tile vectors, eight accumulators, and room for the sums.
// Panels: sixteen tile vectors and eight accumulators. Two panels, because the
// broadcasts of activations would otherwise fill the load ports.
inline constexpr int kStreamRows = 8;
inline constexpr int kPanelRows = 4;
inline constexpr int kPanelCount = 2;

struct Bytes64 {
  __m512i v;
};

HEARTH_INLINE Bytes64 LoadBytes64(const std::byte* p) {
  return {_mm512_loadu_si512(p)};
}
HEARTH_INLINE void StoreBytes64(std::byte* p, Bytes64 a) {
  _mm512_storeu_si512(p, a.v);
}
HEARTH_INLINE __m128i LoadBytes16(const std::byte* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
HEARTH_INLINE Bytes64 LoadQuarters(const TileRows& rows, int i, int offset) {
  __m512i v = _mm512_castsi128_si512(LoadBytes16(rows.Row(i) + offset));
  v = _mm512_inserti32x4(v, LoadBytes16(rows.Row(i + 4) + offset), 1);
  v = _mm512_inserti32x4(v, LoadBytes16(rows.Row(i + 8) + offset), 2);
  v = _mm512_inserti32x4(v, LoadBytes16(rows.Row(i + 12) + offset), 3);
  return {v};
}
HEARTH_INLINE void Transpose4(Bytes64* t) {
  const __m512i ab_low = _mm512_unpacklo_epi32(t[0].v, t[1].v);
  const __m512i ab_high = _mm512_unpackhi_epi32(t[0].v, t[1].v);
  const __m512i cd_low = _mm512_unpacklo_epi32(t[2].v, t[3].v);
  const __m512i cd_high = _mm512_unpackhi_epi32(t[2].v, t[3].v);
  t[0].v = _mm512_unpacklo_epi64(ab_low, cd_low);
  t[1].v = _mm512_unpackhi_epi64(ab_low, cd_low);
  t[2].v = _mm512_unpacklo_epi64(ab_high, cd_high);
  t[3].v = _mm512_unpackhi_epi64(ab_high, cd_high);
}
HEARTH_INLINE Bytes64 LowNibbles(Bytes64 a) {
  return {_mm512_and_si512(a.v, _mm512_set1_epi8(15))};
}
HEARTH_INLINE Bytes64 HighNibbles(Bytes64 a) {
  return {_mm512_and_si512(_mm512_srli_epi16(a.v, 4), _mm512_set1_epi8(15))};
}
