// Sixteen float lanes as four Advanced SIMD registers. Contracts: vec/scalar.h.

inline constexpr int kLanes = 16;

inline constexpr int kTileRows = 3;
inline constexpr int kTileColumns = 2;
inline constexpr int kAttendRows = 4;
inline constexpr int kScoreGroups = 1;

struct Floats {
  float32x4_t v[4];
};
struct Ints {
  int32x4_t v[4];
};
struct Mask {
  uint32x4_t v[4];  // all ones or all zeros a lane
};

// r.v[q] of what is done with register q; int8_bytes_neon.h ends it.
#define HEARTH_QUARTERS(expression)                  \
  for (int q = 0; q < 4; ++q) r.v[q] = (expression); \
  return r

// --- Making and moving ---------------------------------------------------
HEARTH_INLINE Floats Splat(float x) {
  Floats r;
  HEARTH_QUARTERS(vdupq_n_f32(x));
}
HEARTH_INLINE Floats Load(const float* p) {
  Floats r;
  HEARTH_QUARTERS(vld1q_f32(p + 4 * q));
}
HEARTH_INLINE void Store(float* p, Floats a) {
  for (int q = 0; q < 4; ++q) vst1q_f32(p + 4 * q, a.v[q]);
}
HEARTH_INLINE uint8x16_t LoadBytes16(const std::byte* p) {
  return vld1q_u8(reinterpret_cast<const std::uint8_t*>(p));
}
HEARTH_INLINE uint16x4_t LoadHalves4(const std::byte* p) {
  return vcreate_u16(LoadLe<std::uint64_t>(p));
}
HEARTH_INLINE Floats LoadF16(const std::byte* p) {
  Floats r;
  HEARTH_QUARTERS(vcvt_f32_f16(vreinterpret_f16_u16(LoadHalves4(p + 8 * q))));
}
HEARTH_INLINE Floats LoadBf16(const std::byte* p) {
  Floats r;
  HEARTH_QUARTERS(
      vreinterpretq_f32_u32(vshll_n_u16(LoadHalves4(p + 8 * q), 16)));
}
HEARTH_INLINE void StoreF16(std::byte* p, Floats a) {
  for (int q = 0; q < 4; ++q) {
    const uint16x4_t halves = vreinterpret_u16_f16(vcvt_f16_f32(a.v[q]));
    StoreLe(p + 8 * q, vget_lane_u64(vreinterpret_u64_u16(halves), 0));
  }
}
HEARTH_INLINE Floats GatherF16(const TileRows& rows) {
  Floats r;
  HEARTH_QUARTERS(
      vcvt_f32_f16(vreinterpret_f16_u16(vcreate_u16(rows.Halves4(q)))));
}
// Bytes to lanes, unsigned.
HEARTH_INLINE Ints WidenBytes(uint8x16_t bytes) {
  const uint16x8_t low = vmovl_u8(vget_low_u8(bytes));
  const uint16x8_t high = vmovl_u8(vget_high_u8(bytes));
  return {{vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(low))),
           vreinterpretq_s32_u32(vmovl_u16(vget_high_u16(low))),
           vreinterpretq_s32_u32(vmovl_u16(vget_low_u16(high))),
           vreinterpretq_s32_u32(vmovl_u16(vget_high_u16(high)))}};
}
HEARTH_INLINE Ints LoadCodes(const std::byte* p) {
  return WidenBytes(LoadBytes16(p));
}
HEARTH_INLINE Ints LoadNibbles(const std::byte* p) {
  const uint8x8_t packed = vcreate_u8(LoadLe<std::uint64_t>(p));
  const uint8x8_t low = vand_u8(packed, vdup_n_u8(15));
  const uint8x8_t high = vshr_n_u8(packed, 4);
  return WidenBytes(vcombine_u8(vzip1_u8(low, high), vzip2_u8(low, high)));
}

// --- Arithmetic ------------------------------------------------------------
HEARTH_INLINE Floats Add(Floats a, Floats b) {
  Floats r;
  HEARTH_QUARTERS(vaddq_f32(a.v[q], b.v[q]));
}
HEARTH_INLINE Floats Sub(Floats a, Floats b) {
  Floats r;
  HEARTH_QUARTERS(vsubq_f32(a.v[q], b.v[q]));
}
HEARTH_INLINE Floats Mul(Floats a, Floats b) {
  Floats r;
  HEARTH_QUARTERS(vmulq_f32(a.v[q], b.v[q]));
}
HEARTH_INLINE Floats Div(Floats a, Floats b) {
  Floats r;
  HEARTH_QUARTERS(vdivq_f32(a.v[q], b.v[q]));
}
HEARTH_INLINE Floats MulAdd(Floats a, Floats b, Floats c) {
  Floats r;
  HEARTH_QUARTERS(vfmaq_f32(c.v[q], a.v[q], b.v[q]));
}
HEARTH_INLINE Floats NegMulAdd(Floats a, Floats b, Floats c) {
  Floats r;
  HEARTH_QUARTERS(vfmsq_f32(c.v[q], a.v[q], b.v[q]));
}
// By comparing: the processor's own maximum is a NaN where either is one, and
// tells zeros apart.
HEARTH_INLINE float32x4_t Max4(float32x4_t a, float32x4_t b) {
  return vbslq_f32(vcgtq_f32(a, b), a, b);
}
HEARTH_INLINE Floats Max(Floats a, Floats b) {
  Floats r;
  HEARTH_QUARTERS(Max4(a.v[q], b.v[q]));
}
HEARTH_INLINE Floats Min(Floats a, Floats b) {
  Floats r;
  HEARTH_QUARTERS(vbslq_f32(vcltq_f32(a.v[q], b.v[q]), a.v[q], b.v[q]));
}
HEARTH_INLINE Floats Abs(Floats a) {
  Floats r;
  HEARTH_QUARTERS(vabsq_f32(a.v[q]));
}

// --- Masks -------------------------------------------------------------------
HEARTH_INLINE Mask Less(Floats a, Floats b) {
  Mask r;
  HEARTH_QUARTERS(vcltq_f32(a.v[q], b.v[q]));
}
HEARTH_INLINE Mask Equal(Floats a, Floats b) {
  Mask r;
  HEARTH_QUARTERS(vceqq_f32(a.v[q], b.v[q]));
}
HEARTH_INLINE Mask IsNan(Floats a) {
  Mask r;
  HEARTH_QUARTERS(vmvnq_u32(vceqq_f32(a.v[q], a.v[q])));
}
HEARTH_INLINE Mask LanesBetween(int begin, int end) {
  constexpr std::int32_t kFirst[4] = {0, 1, 2, 3};
  const int32x4_t first = vld1q_s32(kFirst);
  Mask r;
  HEARTH_QUARTERS(vandq_u32(vcgeq_s32(first, vdupq_n_s32(begin - 4 * q)),
                            vcltq_s32(first, vdupq_n_s32(end - 4 * q))));
}
HEARTH_INLINE Floats Select(Mask m, Floats yes, Floats no) {
  Floats r;
  HEARTH_QUARTERS(vbslq_f32(m.v[q], yes.v[q], no.v[q]));
}
HEARTH_INLINE std::uint32_t Bits(Mask m) {
  constexpr std::uint32_t kBits[4] = {1, 2, 4, 8};
  const uint32x4_t bits = vld1q_u32(kBits);
  std::uint32_t all = 0;
  for (int q = 0; q < 4; ++q) {
    all |= vaddvq_u32(vandq_u32(m.v[q], bits)) << (4 * q);
  }
  return all;
}

// --- Integers ----------------------------------------------------------------
HEARTH_INLINE Ints SplatInts(std::int32_t x) {
  Ints r;
  HEARTH_QUARTERS(vdupq_n_s32(x));
}
HEARTH_INLINE Ints AddInts(Ints a, Ints b) {
  Ints r;
  HEARTH_QUARTERS(vaddq_s32(a.v[q], b.v[q]));
}
template <int kBits>
HEARTH_INLINE Ints ShiftLeft(Ints a) {
  Ints r;
  HEARTH_QUARTERS(vshlq_n_s32(a.v[q], kBits));
}
HEARTH_INLINE Floats ToFloats(Ints a) {
  Floats r;
  HEARTH_QUARTERS(vcvtq_f32_s32(a.v[q]));
}
HEARTH_INLINE Ints AsInts(Floats a) {
  Ints r;
  HEARTH_QUARTERS(vreinterpretq_s32_f32(a.v[q]));
}
HEARTH_INLINE Floats AsFloats(Ints a) {
  Floats r;
  HEARTH_QUARTERS(vreinterpretq_f32_s32(a.v[q]));
}
HEARTH_INLINE void StoreLowBytes(std::int8_t* p, Ints a) {
  const int16x8_t low = vcombine_s16(vmovn_s32(a.v[0]), vmovn_s32(a.v[1]));
  const int16x8_t high = vcombine_s16(vmovn_s32(a.v[2]), vmovn_s32(a.v[3]));
  vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
}

// --- Across lanes ------------------------------------------------------------
HEARTH_INLINE float ReduceAdd(Floats a) {
  const float32x4_t four =
      vaddq_f32(vaddq_f32(a.v[0], a.v[2]), vaddq_f32(a.v[1], a.v[3]));
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
HEARTH_INLINE float ReduceMax(Floats a) {
  const float32x4_t four = Max4(Max4(a.v[0], a.v[2]), Max4(a.v[1], a.v[3]));
  const float32x4_t two = Max4(four, vextq_f32(four, four, 2));
  return vgetq_lane_f32(Max4(two, vextq_f32(two, two, 1)), 0);
}
HEARTH_INLINE Floats ReduceAdd16(const float* vectors) {
  float sums[kLanes];
  for (int i = 0; i < kLanes; ++i) sums[i] = ReduceAdd(Load(vectors + 16 * i));
  return Load(sums);
}
