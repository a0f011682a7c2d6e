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

template <unsigned kFrom, unsigned kCount, unsigned kTo>
HEARTH_INLINE Bytes64 MoveBits(Bytes64 a) {
  constexpr auto kMask = static_cast<char>(((1u << kCount) - 1u) << kTo);
  __m512i v = a.v;
  if constexpr (kFrom > kTo) v = _mm512_srli_epi16(v, kFrom - kTo);
  if constexpr (kFrom < kTo) v = _mm512_slli_epi16(v, kTo - kFrom);
  return {_mm512_and_si512(v, _mm512_set1_epi8(kMask))};
}
HEARTH_INLINE Bytes64 OrBytes(Bytes64 a, Bytes64 b) {
  return {_mm512_or_si512(a.v, b.v)};
}
HEARTH_INLINE Bytes64 LookUp16(const std::int8_t* table, Bytes64 codes) {
  const __m128i values =
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(table));
  return {_mm512_shuffle_epi8(_mm512_broadcast_i32x4(values), codes.v)};
}
template <int kNibble>
HEARTH_INLINE Bytes64 SpreadNibble(Bytes64 a) {
  constexpr int kAll = 0x01010101;
  constexpr int kByte = kNibble / 2 * kAll;
  const __m512i from = _mm512_broadcast_i32x4(_mm_setr_epi32(
      kByte, kByte + 4 * kAll, kByte + 8 * kAll, kByte + 12 * kAll));
  constexpr auto kBits =
      static_cast<std::int32_t>(kNibble % 2 ? 0x80402010u : 0x08040201u);
  const __mmask64 set = _mm512_test_epi8_mask(_mm512_shuffle_epi8(a.v, from),
                                              _mm512_set1_epi32(kBits));
  return {_mm512_maskz_mov_epi8(set, _mm512_set1_epi8(16))};
}
template <unsigned kByte>
HEARTH_INLINE Ints UnitByte(Bytes64 a) {
  return {_mm512_and_si512(_mm512_srli_epi32(a.v, 8 * kByte),
                           _mm512_set1_epi32(255))};
}
template <unsigned kByte>
HEARTH_INLINE Ints UnitSignedByte(Bytes64 a) {
  return {_mm512_srai_epi32(_mm512_slli_epi32(a.v, 24 - 8 * kByte), 24)};
}
template <unsigned kHalf>
HEARTH_INLINE Floats UnitHalf(Bytes64 a) {
  const __m512i low = kHalf ? _mm512_srli_epi32(a.v, 16) : a.v;
  return {_mm512_cvtph_ps(_mm512_cvtepi32_epi16(low))};
}
