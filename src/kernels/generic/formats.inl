// Stored number formats, read as sixteen exact floats. Offset: of the bytes of
// number i of a run, for a run of whole bytes.

struct F32Format {
  static constexpr int kBytes = 4;
  static constexpr std::int64_t Offset(std::int64_t i) { return 4 * i; }
  static constexpr bool kQuantised = false;
  HEARTH_INLINE static Floats Read(const std::byte* p) {
    return Load(reinterpret_cast<const float*>(p));
  }
};
struct F16Format {
  static constexpr int kBytes = 2;
  static constexpr std::int64_t Offset(std::int64_t i) { return 2 * i; }
  static constexpr bool kQuantised = false;
  HEARTH_INLINE static Floats Read(const std::byte* p) { return LoadF16(p); }
};
struct Bf16Format {
  static constexpr int kBytes = 2;
  static constexpr std::int64_t Offset(std::int64_t i) { return 2 * i; }
  static constexpr bool kQuantised = false;
  HEARTH_INLINE static Floats Read(const std::byte* p) { return LoadBf16(p); }
};

// The first n values, zeros after them. Reads no byte beyond.
template <class Format>
HEARTH_INLINE Floats ReadN(const std::byte* p, int n) {
  alignas(64) std::byte buffer[kLanes * Format::kBytes] = {};
  std::memcpy(buffer, p, static_cast<std::size_t>(n * Format::kBytes));
  return Format::Read(buffer);
}

// A run of weights in memory order: At(i) is the 16 values from i on.
template <class Format>
struct PlainRun {
  const std::byte* data;

  HEARTH_INLINE Floats At(std::int64_t i) const {
    return Format::Read(data + i * Format::kBytes);
  }
  HEARTH_INLINE Floats AtN(std::int64_t i, int n) const {
    return ReadN<Format>(data + i * Format::kBytes, n);
  }
  PlainRun From(std::int64_t i) const { return {data + i * Format::kBytes}; }
  const std::byte* Address(std::int64_t i) const {
    return data + i * Format::kBytes;
  }
};

// .tinygpt int4: value = scale * (nibble - 8), one scale per 64 values of the
// flat matrix. `first` may lie anywhere in a block. The product is exact: 11
// bits of scale times 4 bits.
struct TgInt4Run {
  const std::byte* data;
  const std::byte* scales;
  std::int64_t first;

  float One(std::int64_t i) const {
    const std::int64_t flat = first + i;
    const int byte = std::to_integer<int>(data[flat / 2]);
    const int code = (byte >> (4 * (flat & 1))) & 15;
    const F16 scale{LoadLe<std::uint16_t>(scales + flat / 64 * 2)};
    return ToFloat(scale) * static_cast<float>(code - 8);
  }
  HEARTH_INLINE Floats AtN(std::int64_t i, int n) const {
    float values[kLanes] = {};
    for (int lane = 0; lane < n; ++lane) values[lane] = One(i + lane);
    return Load(values);
  }
  HEARTH_INLINE Floats At(std::int64_t i) const {
    const std::int64_t flat = first + i;
    if (flat % kLanes != 0) return AtN(i, kLanes);
    const Ints codes = AddInts(LoadNibbles(data + flat / 2), SplatInts(-8));
    const F16 scale{LoadLe<std::uint16_t>(scales + flat / 64 * 2)};
    return Mul(Splat(ToFloat(scale)), ToFloats(codes));
  }
  TgInt4Run From(std::int64_t i) const { return {data, scales, first + i}; }
  const std::byte* Address(std::int64_t i) const {
    return data + (first + i) / 2;
  }
};

template <class Run>
Run RunOf(const WeightMatrix& w);
template <>
HEARTH_INLINE PlainRun<F32Format> RunOf(const WeightMatrix& w) {
  return {w.data};
}
template <>
HEARTH_INLINE PlainRun<F16Format> RunOf(const WeightMatrix& w) {
  return {w.data};
}
template <>
HEARTH_INLINE PlainRun<Bf16Format> RunOf(const WeightMatrix& w) {
  return {w.data};
}
template <>
HEARTH_INLINE TgInt4Run RunOf(const WeightMatrix& w) {
  return {w.data, w.scales, 0};
}
