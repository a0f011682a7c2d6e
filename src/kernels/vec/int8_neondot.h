// Exact int8 dot products by sdot. Contracts: vec/int8_scalar.h.

// As an instruction and not as the compilers' function, which they give to
// files for such processors alone and not to a region.
HEARTH_INLINE int32x4_t Dot4(int32x4_t acc, uint8x16_t codes, int32x2_t four) {
  asm("sdot %0.4s, %1.16b, %2.4b[0]" : "+w"(acc) : "w"(codes), "w"(four));
  return acc;
}
HEARTH_INLINE Ints DotSigned(Ints acc, Bytes64 codes, const std::int8_t* x) {
  const int32x2_t four = vdup_n_s32(LoadLe<std::int32_t>(x));
  for (int q = 0; q < 4; ++q) acc.v[q] = Dot4(acc.v[q], codes.v[q], four);
  return acc;
}
HEARTH_INLINE Ints DotUnsigned(Ints acc, Bytes64 codes, const std::int8_t* x) {
  return DotSigned(acc, codes, x);
}
