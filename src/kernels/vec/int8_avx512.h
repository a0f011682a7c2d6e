// Exact int8 dot products for AVX-512 without VNNI. Contracts: int8_scalar.h.

// Saturation: see vec/int8_avx2.h; the same bound holds.
HEARTH_INLINE __m512i Dot4(__m512i acc, __m512i a, __m512i b) {
  const __m512i pairs = _mm512_maddubs_epi16(a, b);
  return _mm512_add_epi32(acc, _mm512_madd_epi16(pairs, _mm512_set1_epi16(1)));
}
HEARTH_INLINE Ints DotUnsigned(Ints acc, Bytes64 codes, const std::int8_t* x) {
  return {Dot4(acc.v, codes.v, _mm512_set1_epi32(LoadLe<std::int32_t>(x)))};
}

HEARTH_INLINE Bytes64 PrepareSigned(Bytes64 codes) { return codes; }
HEARTH_INLINE Ints StartSigned(std::int32_t /*offset_start*/) {
  return SplatInts(0);
}
HEARTH_INLINE Ints DotSigned(Ints acc, Bytes64 codes, const std::int8_t* x) {
  const __m512i four = _mm512_set1_epi32(LoadLe<std::int32_t>(x));
  const __mmask64 negative = _mm512_movepi8_mask(codes.v);
  const __m512i moved =
      _mm512_mask_sub_epi8(four, negative, _mm512_setzero_si512(), four);
  return {Dot4(acc.v, _mm512_abs_epi8(codes.v), moved)};
}
