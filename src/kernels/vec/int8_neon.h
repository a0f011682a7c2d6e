// Exact int8 dot products where there is no instruction for them: products of
// bytes, then two sums of pairs. Contracts: vec/int8_scalar.h.

// Sums of two products have room in 16 bits: 2 * 128 * 127 = 32,512.
HEARTH_INLINE int32x4_t Dot4(int32x4_t acc, int8x16_t codes, int8x16_t four) {
  const int16x8_t low = vmull_s8(vget_low_s8(codes), vget_low_s8(four));
  const int16x8_t high = vmull_high_s8(codes, four);
  return vpadalq_s16(acc, vpaddq_s16(low, high));
}
HEARTH_INLINE Ints DotSigned(Ints acc, Bytes64 codes, const std::int8_t* x) {
  const int8x16_t four =
      vreinterpretq_s8_s32(vdupq_n_s32(LoadLe<std::int32_t>(x)));
  for (int q = 0; q < 4; ++q) {
    acc.v[q] = Dot4(acc.v[q], vreinterpretq_s8_u8(codes.v[q]), four);
  }
  return acc;
}
HEARTH_INLINE Ints DotUnsigned(Ints acc, Bytes64 codes, const std::int8_t* x) {
  return DotSigned(acc, codes, x);
}
