// Exact int8 dot products by vpdpbusd, which does not saturate. Contracts:
// vec/int8_scalar.h.

HEARTH_INLINE Ints DotUnsigned(Ints acc, Bytes64 codes, const std::int8_t* x) {
  return {_mm512_dpbusd_epi32(acc.v, codes.v,
                              _mm512_set1_epi32(LoadLe<std::int32_t>(x)))};
}

// The instruction wants unsigned codes: code + 128, which is a flipped top bit,
// and the sum starts at -128 * sum(x).
HEARTH_INLINE Bytes64 PrepareSigned(Bytes64 codes) {
  return {_mm512_xor_si512(codes.v, _mm512_set1_epi8(-128))};
}
HEARTH_INLINE Ints StartSigned(std::int32_t offset_start) {
  return SplatInts(offset_start);
}
HEARTH_INLINE Ints DotSigned(Ints acc, Bytes64 codes, const std::int8_t* x) {
  return DotUnsigned(acc, codes, x);
}
