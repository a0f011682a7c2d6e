// Sixteen float lanes as two ymm registers: lanes 0..7 in lo, 8..15 in hi.
// Contracts: vec/scalar.h.

inline constexpr int kLanes = 16;

inline constexpr int kTileRows = 3;
inline constexpr int kTileColumns = 2;
inline constexpr int kAttendRows = 4;
inline constexpr int kScoreGroups = 1;

struct Floats {
  __m256 lo, hi;
};
struct Ints {
  __m256i lo, hi;
};
struct Mask {
  __m256 lo, hi;  // all ones or all zeros a lane
};

// --- Making and moving ---------------------------------------------------
HEARTH_INLINE Floats Splat(float x) {
  return {_mm256_set1_ps(x), _mm256_set1_ps(x)};
}
HEARTH_INLINE Floats Load(const float* p) {
  return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)};
}
HEARTH_INLINE void Store(float* p, Floats a) {
  _mm256_storeu_ps(p, a.lo);
  _mm256_storeu_ps(p + 8, a.hi);
}
HEARTH_INLINE __m128i LoadBytes16(const std::byte* p) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
}
HEARTH_INLINE Floats LoadF16(const std::byte* p) {
  return {_mm256_cvtph_ps(LoadBytes16(p)),
          _mm256_cvtph_ps(LoadBytes16(p + 16))};
}
HEARTH_INLINE __m256 WidenBf16(__m128i halves) {
  return _mm256_castsi256_ps(
      _mm256_slli_epi32(_mm256_cvtepu16_epi32(halves), 16));
}
HEARTH_INLINE Floats LoadBf16(const std::byte* p) {
  return {WidenBf16(LoadBytes16(p)), WidenBf16(LoadBytes16(p + 16))};
}
HEARTH_INLINE void StoreF16(std::byte* p, Floats a) {
  auto* out = reinterpret_cast<__m128i*>(p);
  _mm_storeu_si128(out, _mm256_cvtps_ph(a.lo, _MM_FROUND_TO_NEAREST_INT));
  _mm_storeu_si128(out + 1, _mm256_cvtps_ph(a.hi, _MM_FROUND_TO_NEAREST_INT));
}
// By way of general registers: sixteen 2-byte inserts would crowd the shuffle
// ports that the tile itself needs.
HEARTH_INLINE __m128i Halves8(const TileRows& rows, int q) {
  return _mm_set_epi64x(static_cast<std::int64_t>(rows.Halves4(q + 1)),
                        static_cast<std::int64_t>(rows.Halves4(q)));
}
HEARTH_INLINE Floats GatherF16(const TileRows& rows) {
  return {_mm256_cvtph_ps(Halves8(rows, 0)), _mm256_cvtph_ps(Halves8(rows, 2))};
}
HEARTH_INLINE Ints LoadCodes(const std::byte* p) {
  const __m128i bytes = LoadBytes16(p);
  return {_mm256_cvtepu8_epi32(bytes),
          _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
}
HEARTH_INLINE Ints LoadNibbles(const std::byte* p) {
  const __m128i packed = _mm_cvtsi64_si128(LoadLe<std::int64_t>(p));
  const __m128i fifteen = _mm_set1_epi8(15);
  const __m128i low = _mm_and_si128(packed, fifteen);
  const __m128i high = _mm_and_si128(_mm_srli_epi16(packed, 4), fifteen);
  const __m128i bytes = _mm_unpacklo_epi8(low, high);
  return {_mm256_cvtepu8_epi32(bytes),
          _mm256_cvtepu8_epi32(_mm_srli_si128(bytes, 8))};
}

// --- Arithmetic ------------------------------------------------------------
HEARTH_INLINE Floats Add(Floats a, Floats b) {
  return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)};
}
HEARTH_INLINE Floats Sub(Floats a, Floats b) {
  return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)};
}
HEARTH_INLINE Floats Mul(Floats a, Floats b) {
  return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)};
}
HEARTH_INLINE Floats Div(Floats a, Floats b) {
  return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)};
}
HEARTH_INLINE Floats MulAdd(Floats a, Floats b, Floats c) {
  return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)};
}
HEARTH_INLINE Floats NegMulAdd(Floats a, Floats b, Floats c) {
  return {_mm256_fnmadd_ps(a.lo, b.lo, c.lo),
          _mm256_fnmadd_ps(a.hi, b.hi, c.hi)};
}
HEARTH_INLINE Floats Max(Floats a, Floats b) {
  return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)};
}
HEARTH_INLINE Floats Min(Floats a, Floats b) {
  return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)};
}
HEARTH_INLINE Floats Abs(Floats a) {
  const __m256 sign = _mm256_set1_ps(-0.0f);
  return {_mm256_andnot_ps(sign, a.lo), _mm256_andnot_ps(sign, a.hi)};
}

// --- Masks -------------------------------------------------------------------
HEARTH_INLINE Mask Less(Floats a, Floats b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ),
          _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)};
}
HEARTH_INLINE Mask Equal(Floats a, Floats b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_EQ_OQ),
          _mm256_cmp_ps(a.hi, b.hi, _CMP_EQ_OQ)};
}
HEARTH_INLINE Mask IsNan(Floats a) {
  return {_mm256_cmp_ps(a.lo, a.lo, _CMP_UNORD_Q),
          _mm256_cmp_ps(a.hi, a.hi, _CMP_UNORD_Q)};
}
HEARTH_INLINE __m256 LanesBetween8(int begin, int end) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_castsi256_ps(
      _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(begin), lane),
                          _mm256_cmpgt_epi32(_mm256_set1_epi32(end), lane)));
}
HEARTH_INLINE Mask LanesBetween(int begin, int end) {
  return {LanesBetween8(begin, end), LanesBetween8(begin - 8, end - 8)};
}
HEARTH_INLINE Floats Select(Mask m, Floats yes, Floats no) {
  return {_mm256_blendv_ps(no.lo, yes.lo, m.lo),
          _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
}
HEARTH_INLINE std::uint32_t Bits(Mask m) {
  return static_cast<std::uint32_t>(_mm256_movemask_ps(m.lo)) |
         static_cast<std::uint32_t>(_mm256_movemask_ps(m.hi)) << 8;
}

// --- Integers ----------------------------------------------------------------
HEARTH_INLINE Ints SplatInts(std::int32_t x) {
  return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)};
}
HEARTH_INLINE Ints AddInts(Ints a, Ints b) {
  return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)};
}
template <int kBits>
HEARTH_INLINE Ints ShiftLeft(Ints a) {
  return {_mm256_slli_epi32(a.lo, kBits), _mm256_slli_epi32(a.hi, kBits)};
}
HEARTH_INLINE Floats ToFloats(Ints a) {
  return {_mm256_cvtepi32_ps(a.lo), _mm256_cvtepi32_ps(a.hi)};
}
HEARTH_INLINE Ints AsInts(Floats a) {
  return {_mm256_castps_si256(a.lo), _mm256_castps_si256(a.hi)};
}
HEARTH_INLINE Floats AsFloats(Ints a) {
  return {_mm256_castsi256_ps(a.lo), _mm256_castsi256_ps(a.hi)};
}
HEARTH_INLINE void StoreLowBytes(std::int8_t* p, Ints a) {
  const __m256i byte = _mm256_set1_epi32(255);
  // Packing works within 128-bit halves, so its result is in the order
  // 0-3 8-11 | 4-7 12-15 and needs the middle swapped.
  const __m256i words = _mm256_permute4x64_epi64(
      _mm256_packus_epi32(_mm256_and_si256(a.lo, byte),
                          _mm256_and_si256(a.hi, byte)),
      0xd8);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm_packus_epi16(_mm256_castsi256_si128(words),
                                    _mm256_extracti128_si256(words, 1)));
}

// --- Across lanes ------------------------------------------------------------
HEARTH_INLINE float ReduceAdd(Floats a) {
  const __m256 eight = _mm256_add_ps(a.lo, a.hi);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                                 _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
HEARTH_INLINE float ReduceMax(Floats a) {
  const __m256 eight = _mm256_max_ps(a.lo, a.hi);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight),
                                 _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// Eight vectors, 16 floats apart, to their eight sums; the tree of ReduceAdd
// with the shuffles of all eight shared.
HEARTH_INLINE __m256 ReduceAdd8(const float* vectors) {
  const auto eight = [vectors](int i) {
    return _mm256_add_ps(_mm256_loadu_ps(vectors + kLanes * i),
                         _mm256_loadu_ps(vectors + kLanes * i + 8));
  };
  // [i | i + 4], four lanes each.
  const auto four = [eight](int i) {
    const __m256 a = eight(i);
    const __m256 b = eight(i + 4);
    return _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20),
                         _mm256_permute2f128_ps(a, b, 0x31));
  };
  // Two lanes each of i, i + 1 | i + 4, i + 5.
  const auto two = [four](int i) {
    const __m256 a = four(i);
    const __m256 b = four(i + 1);
    return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x44),
                         _mm256_shuffle_ps(a, b, 0xee));
  };
  const __m256 a = two(0);
  const __m256 b = two(2);
  return _mm256_add_ps(_mm256_shuffle_ps(a, b, 0x88),
                       _mm256_shuffle_ps(a, b, 0xdd));
}
HEARTH_INLINE Floats ReduceAdd16(const float* vectors) {
  return {ReduceAdd8(vectors), ReduceAdd8(vectors + 8 * kLanes)};
}
