// Sixteen float lanes as one zmm register. Contracts: vec/scalar.h.

inline constexpr int kLanes = 16;

// 24 accumulators, 4 weights and a row leave three registers spare.
inline constexpr int kTileRows = 6;
inline constexpr int kTileColumns = 4;
inline constexpr int kAttendRows = 8;
inline constexpr int kScoreGroups = 2;

struct Floats {
  __m512 v;
};
struct Ints {
  __m512i v;
};
struct Mask {
  __mmask16 v;
};

// --- Making and moving ---------------------------------------------------
HEARTH_INLINE Floats Splat(float x) { return {_mm512_set1_ps(x)}; }
HEARTH_INLINE Floats Load(const float* p) { return {_mm512_loadu_ps(p)}; }
HEARTH_INLINE void Store(float* p, Floats a) { _mm512_storeu_ps(p, a.v); }
HEARTH_INLINE __mmask16 FirstLanes(int n) {
  return static_cast<__mmask16>((1u << n) - 1u);
}
HEARTH_INLINE Floats LoadN(const float* p, int n) {
  return {_mm512_maskz_loadu_ps(FirstLanes(n), p)};
}
HEARTH_INLINE void StoreN(float* p, Floats a, int n) {
  _mm512_mask_storeu_ps(p, FirstLanes(n), a.v);
}
HEARTH_INLINE __m256i LoadBytes32(const std::byte* p) {
  return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
}
HEARTH_INLINE Floats LoadF16(const std::byte* p) {
  return {_mm512_cvtph_ps(LoadBytes32(p))};
}
HEARTH_INLINE Floats LoadBf16(const std::byte* p) {
  return {_mm512_castsi512_ps(
      _mm512_slli_epi32(_mm512_cvtepu16_epi32(LoadBytes32(p)), 16))};
}
HEARTH_INLINE void StoreF16(std::byte* p, Floats a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a.v, _MM_FROUND_TO_NEAREST_INT));
}
// By way of general registers: sixteen 2-byte inserts would crowd the shuffle
// ports that the tile itself needs.
HEARTH_INLINE __m128i Halves8(const TileRows& rows, int q) {
  return _mm_set_epi64x(static_cast<std::int64_t>(rows.Halves4(q + 1)),
                        static_cast<std::int64_t>(rows.Halves4(q)));
}
HEARTH_INLINE Floats GatherF16(const TileRows& rows) {
  return {
      _mm512_cvtph_ps(_mm256_set_m128i(Halves8(rows, 2), Halves8(rows, 0)))};
}
HEARTH_INLINE Ints LoadCodes(const std::byte* p) {
  return {_mm512_cvtepu8_epi32(
      _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)))};
}
HEARTH_INLINE Ints LoadNibbles(const std::byte* p) {
  const __m128i packed = _mm_cvtsi64_si128(LoadLe<std::int64_t>(p));
  const __m128i fifteen = _mm_set1_epi8(15);
  const __m128i low = _mm_and_si128(packed, fifteen);
  const __m128i high = _mm_and_si128(_mm_srli_epi16(packed, 4), fifteen);
  return {_mm512_cvtepu8_epi32(_mm_unpacklo_epi8(low, high))};
}

// --- Arithmetic ------------------------------------------------------------
HEARTH_INLINE Floats Add(Floats a, Floats b) {
  return {_mm512_add_ps(a.v, b.v)};
}
HEARTH_INLINE Floats Sub(Floats a, Floats b) {
  return {_mm512_sub_ps(a.v, b.v)};
}
HEARTH_INLINE Floats Mul(Floats a, Floats b) {
  return {_mm512_mul_ps(a.v, b.v)};
}
HEARTH_INLINE Floats Div(Floats a, Floats b) {
  return {_mm512_div_ps(a.v, b.v)};
}
HEARTH_INLINE Floats MulAdd(Floats a, Floats b, Floats c) {
  return {_mm512_fmadd_ps(a.v, b.v, c.v)};
}
HEARTH_INLINE Floats NegMulAdd(Floats a, Floats b, Floats c) {
  return {_mm512_fnmadd_ps(a.v, b.v, c.v)};
}
HEARTH_INLINE Floats Max(Floats a, Floats b) {
  return {_mm512_max_ps(a.v, b.v)};
}
HEARTH_INLINE Floats Min(Floats a, Floats b) {
  return {_mm512_min_ps(a.v, b.v)};
}
HEARTH_INLINE Floats Abs(Floats a) {
  return {_mm512_andnot_ps(_mm512_set1_ps(-0.0f), a.v)};
}

// --- Masks -------------------------------------------------------------------
HEARTH_INLINE Mask Less(Floats a, Floats b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)};
}
HEARTH_INLINE Mask Equal(Floats a, Floats b) {
  return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_EQ_OQ)};
}
HEARTH_INLINE Mask IsNan(Floats a) {
  return {_mm512_cmp_ps_mask(a.v, a.v, _CMP_UNORD_Q)};
}
HEARTH_INLINE Mask LanesBetween(int begin, int end) {
  const int first = std::clamp(begin, 0, kLanes);
  const int last = std::clamp(end, 0, kLanes);
  return {static_cast<__mmask16>(FirstLanes(last) & ~FirstLanes(first))};
}
HEARTH_INLINE Floats Select(Mask m, Floats yes, Floats no) {
  return {_mm512_mask_blend_ps(m.v, no.v, yes.v)};
}
HEARTH_INLINE std::uint32_t Bits(Mask m) { return m.v; }

// --- Integers ----------------------------------------------------------------
HEARTH_INLINE Ints SplatInts(std::int32_t x) { return {_mm512_set1_epi32(x)}; }
HEARTH_INLINE Ints AddInts(Ints a, Ints b) {
  return {_mm512_add_epi32(a.v, b.v)};
}
template <unsigned kBits>
HEARTH_INLINE Ints ShiftLeft(Ints a) {
  return {_mm512_slli_epi32(a.v, kBits)};
}
HEARTH_INLINE Floats ToFloats(Ints a) { return {_mm512_cvtepi32_ps(a.v)}; }
HEARTH_INLINE Ints AsInts(Floats a) { return {_mm512_castps_si512(a.v)}; }
HEARTH_INLINE Floats AsFloats(Ints a) { return {_mm512_castsi512_ps(a.v)}; }
HEARTH_INLINE void StoreLowBytes(std::int8_t* p, Ints a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a.v));
}

// --- Across lanes: by hand, since g++ 12 warns inside its own reductions
// -------
HEARTH_INLINE float ReduceAdd(Floats a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a.v),
                                     _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight),
                                 _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
HEARTH_INLINE float ReduceMax(Floats a) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(a.v),
                                     _mm512_extractf32x8_ps(a.v, 1));
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight),
                                 _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

// The tree of ReduceAdd with the shuffles of all sixteen shared: every step
// halves the lanes that a vector occupies and puts two into one register.
HEARTH_INLINE Floats ReduceAdd16(const float* vectors) {
  const auto eight = [vectors](int i) {  // [i, i + 4]
    const __m512 a = _mm512_loadu_ps(vectors + kLanes * i);
    const __m512 b = _mm512_loadu_ps(vectors + kLanes * (i + 4));
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44),
                         _mm512_shuffle_f32x4(a, b, 0xee));
  };
  const auto four = [eight](int i) {  // [i, i + 4, i + 8, i + 12]
    const __m512 a = eight(i);
    const __m512 b = eight(i + 8);
    return _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x88),
                         _mm512_shuffle_f32x4(a, b, 0xdd));
  };
  const auto two = [four](int i) {
    const __m512 a = four(i);
    const __m512 b = four(i + 1);
    return _mm512_add_ps(_mm512_shuffle_ps(a, b, 0x44),
                         _mm512_shuffle_ps(a, b, 0xee));
  };
  const __m512 a = two(0);
  const __m512 b = two(2);
  return {_mm512_add_ps(_mm512_shuffle_ps(a, b, 0x88),
                        _mm512_shuffle_ps(a, b, 0xdd))};
}
