// Sixteen float lanes in plain C++: the definition that the other vec/ headers
// reproduce bit for bit, and the path of every CPU without its own header
// (compilers turn these loops into NEON where it is the baseline).
//
// Included inside the namespace of one isa_*.cc. Memory operands need no
// alignment anywhere.

inline constexpr int kLanes = 16;

// How many accumulators fit the register file: rows x columns of the float
// matmul tile, rows of the attention tile, groups of sixteen tokens that share
// a query broadcast. (Small here: without vector registers a larger tile gains
// little and takes long to compile.)
inline constexpr int kTileRows = 1;
inline constexpr int kTileColumns = 1;
inline constexpr int kAttendRows = 1;
inline constexpr int kScoreGroups = 1;

struct Floats {
  float v[kLanes];
};
struct Ints {
  std::int32_t v[kLanes];
};
struct Mask {
  bool v[kLanes];
};

#define HEARTH_LANES(expression)     \
  for (int i = 0; i < kLanes; ++i) { \
    r.v[i] = (expression);           \
  }                                  \
  return r

// --- Making and moving ---------------------------------------------------
HEARTH_INLINE Floats Splat(float x) {
  Floats r;
  HEARTH_LANES(x);
}
HEARTH_INLINE Floats Load(const float* p) {
  Floats r;
  std::memcpy(r.v, p, sizeof(r.v));
  return r;
}
HEARTH_INLINE void Store(float* p, Floats a) {
  std::memcpy(p, a.v, sizeof(a.v));
}
// The first n lanes, 0 <= n <= 16; the others are 0. Reads no byte beyond.
HEARTH_INLINE Floats LoadN(const float* p, int n) {
  Floats r;
  for (int i = 0; i < kLanes; ++i) r.v[i] = i < n ? p[i] : 0.0f;
  return r;
}
HEARTH_INLINE void StoreN(float* p, Floats a, int n) {
  for (int i = 0; i < n; ++i) p[i] = a.v[i];
}
HEARTH_INLINE Floats LoadF16(const std::byte* p) {
  Floats r;
  HEARTH_LANES(ToFloat(F16{LoadLe<std::uint16_t>(p + 2 * i)}));
}
HEARTH_INLINE Floats LoadBf16(const std::byte* p) {
  Floats r;
  HEARTH_LANES(ToFloat(BF16{LoadLe<std::uint16_t>(p + 2 * i)}));
}
// Rounds to nearest even.
HEARTH_INLINE void StoreF16(std::byte* p, Floats a) {
  for (int i = 0; i < kLanes; ++i) StoreLe(p + 2 * i, ToF16(a.v[i]).bits);
}
// Lane i is the f16 at the start of row i.
HEARTH_INLINE Floats GatherF16(const TileRows& rows) {
  Floats r;
  HEARTH_LANES(ToFloat(F16{LoadLe<std::uint16_t>(rows.Row(i))}));
}
// 16 bytes, unsigned.
HEARTH_INLINE Ints LoadCodes(const std::byte* p) {
  Ints r;
  HEARTH_LANES(std::to_integer<int>(p[i]));
}
// 16 nibbles from 8 bytes, low nibble first.
HEARTH_INLINE Ints LoadNibbles(const std::byte* p) {
  Ints r;
  HEARTH_LANES((std::to_integer<int>(p[i / 2]) >> (4 * (i & 1))) & 15);
}

// --- Arithmetic: one IEEE operation a lane -----------------------------------
HEARTH_INLINE Floats Add(Floats a, Floats b) {
  Floats r;
  HEARTH_LANES(a.v[i] + b.v[i]);
}
HEARTH_INLINE Floats Sub(Floats a, Floats b) {
  Floats r;
  HEARTH_LANES(a.v[i] - b.v[i]);
}
HEARTH_INLINE Floats Mul(Floats a, Floats b) {
  Floats r;
  HEARTH_LANES(a.v[i] * b.v[i]);
}
HEARTH_INLINE Floats Div(Floats a, Floats b) {
  Floats r;
  HEARTH_LANES(a.v[i] / b.v[i]);
}
// a * b + c, rounded once.
HEARTH_INLINE Floats MulAdd(Floats a, Floats b, Floats c) {
  Floats r;
  HEARTH_LANES(__builtin_fmaf(a.v[i], b.v[i], c.v[i]));
}
// c - a * b, rounded once.
HEARTH_INLINE Floats NegMulAdd(Floats a, Floats b, Floats c) {
  Floats r;
  HEARTH_LANES(__builtin_fmaf(-a.v[i], b.v[i], c.v[i]));
}
// The second operand when either is NaN or both are equal, as on x86.
HEARTH_INLINE Floats Max(Floats a, Floats b) {
  Floats r;
  HEARTH_LANES(a.v[i] > b.v[i] ? a.v[i] : b.v[i]);
}
HEARTH_INLINE Floats Min(Floats a, Floats b) {
  Floats r;
  HEARTH_LANES(a.v[i] < b.v[i] ? a.v[i] : b.v[i]);
}
HEARTH_INLINE Floats Abs(Floats a) {
  Floats r;
  HEARTH_LANES(
      std::bit_cast<float>(std::bit_cast<std::uint32_t>(a.v[i]) & 0x7fffffffu));
}

// --- Masks -------------------------------------------------------------------
HEARTH_INLINE Mask Less(Floats a, Floats b) {
  Mask r;
  HEARTH_LANES(a.v[i] < b.v[i]);
}
HEARTH_INLINE Mask Equal(Floats a, Floats b) {
  Mask r;
  HEARTH_LANES(a.v[i] == b.v[i]);
}
HEARTH_INLINE Mask IsNan(Floats a) {
  Mask r;
  HEARTH_LANES(a.v[i] != a.v[i]);
}
// Lanes [begin, end); both may lie outside 0..16.
HEARTH_INLINE Mask LanesBetween(int begin, int end) {
  Mask r;
  HEARTH_LANES(i >= begin && i < end);
}
HEARTH_INLINE Floats Select(Mask m, Floats yes, Floats no) {
  Floats r;
  HEARTH_LANES(m.v[i] ? yes.v[i] : no.v[i]);
}
HEARTH_INLINE std::uint32_t Bits(Mask m) {
  std::uint32_t bits = 0;
  for (int i = 0; i < kLanes; ++i) bits |= std::uint32_t{m.v[i]} << i;
  return bits;
}

// --- Integers ----------------------------------------------------------------
HEARTH_INLINE Ints SplatInts(std::int32_t x) {
  Ints r;
  HEARTH_LANES(x);
}
// Wraps.
HEARTH_INLINE Ints AddInts(Ints a, Ints b) {
  Ints r;
  HEARTH_LANES(static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v[i]) +
                                         static_cast<std::uint32_t>(b.v[i])));
}
template <int kBits>
HEARTH_INLINE Ints ShiftLeft(Ints a) {
  Ints r;
  HEARTH_LANES(
      static_cast<std::int32_t>(static_cast<std::uint32_t>(a.v[i]) << kBits));
}
HEARTH_INLINE Floats ToFloats(Ints a) {
  Floats r;
  HEARTH_LANES(static_cast<float>(a.v[i]));
}
HEARTH_INLINE Ints AsInts(Floats a) { return std::bit_cast<Ints>(a); }
HEARTH_INLINE Floats AsFloats(Ints a) { return std::bit_cast<Floats>(a); }
// The low byte of each lane.
HEARTH_INLINE void StoreLowBytes(std::int8_t* p, Ints a) {
  for (int i = 0; i < kLanes; ++i) p[i] = static_cast<std::int8_t>(a.v[i]);
}

// --- Across lanes: the one fixed tree
// ------------------------------------------ Lane i meets i + 8, then i + 4, i
// + 2, i + 1.
HEARTH_INLINE float ReduceAdd(Floats a) {
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) a.v[i] = a.v[i] + a.v[i + width];
  }
  return a.v[0];
}
HEARTH_INLINE float ReduceMax(Floats a) {
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) {
      a.v[i] = a.v[i] > a.v[i + width] ? a.v[i] : a.v[i + width];
    }
  }
  return a.v[0];
}
// Lane i is ReduceAdd of the i-th of 16 vectors, 16 floats apart.
HEARTH_INLINE Floats ReduceAdd16(const float* vectors) {
  Floats r;
  HEARTH_LANES(ReduceAdd(Load(vectors + kLanes * i)));
}

#undef HEARTH_LANES
