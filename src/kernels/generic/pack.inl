// Activations as the matmuls take them.
//
//   float weights  float[n_in], padded with zeros to a multiple of 16
//   int8 weights   per group of 32: the int8 codes, their float scale, and an
//                  int32 -bias * sum(codes), where bias is what the weight
//                  codes have too much (128 for Q8_0 as unsigned, 8 for Q4_0).
//                  Together, so that a row needs one pointer.
// Rows are padded to 64 bytes.

inline constexpr std::int64_t kGroup = 32;

constexpr std::int64_t RoundUp(std::int64_t n, std::int64_t to) {
  return (n + to - 1) / to * to;
}

bool IsInt8(DType weight) {
  return weight == DType::kQ8_0 || weight == DType::kQ4_0;
}

struct PackedGroup {
  static constexpr std::int64_t kBytes = kGroup + 8;

  const std::byte* p;

  const std::int8_t* codes() const {
    return reinterpret_cast<const std::int8_t*>(p);
  }
  float scale() const { return LoadLe<float>(p + kGroup); }
  std::int32_t start() const { return LoadLe<std::int32_t>(p + kGroup + 4); }
};

std::size_t PackedRowBytes(DType weight, std::int64_t n_in) {
  const std::int64_t bytes =
      IsInt8(weight) ? n_in / kGroup * PackedGroup::kBytes : n_in * 4;
  std::int64_t padded = RoundUp(bytes, 64);
  // Rows a multiple of the L1 way size apart would all fall into one set.
  if (padded % 2048 == 0) padded += 64;
  return static_cast<std::size_t>(padded);
}

// Writes 32 codes; returns their sum and the scale.
HEARTH_INLINE std::int32_t PackGroup(const float* x, std::int8_t* codes,
                                     float* scale) {
  const Floats a = Load(x);
  const Floats b = Load(x + kLanes);
  const float largest = ReduceMax(Max(Abs(a), Max(Abs(b), Splat(0.0f))));
  // Below this, 127 / largest could overflow; such a group counts as zero.
  const bool tiny = largest < 0x1p-100f;
  const Floats inverse = Splat(tiny ? 0.0f : 127.0f / largest);
  // Clamping also turns NaN into a valid code, so that the integer product
  // stays exact; the scale carries the NaN on.
  const auto code = [inverse](Floats v) {
    const Floats bounded =
        Min(Max(Mul(v, inverse), Splat(-127.0f)), Splat(127.0f));
    return Add(bounded, Splat(0x1.8p23f));  // rounds; low byte is the code
  };
  const Floats code_a = code(a);
  const Floats code_b = code(b);
  StoreLowBytes(codes, AsInts(code_a));
  StoreLowBytes(codes + kLanes, AsInts(code_b));
  *scale = tiny ? 0.0f : largest / 127.0f;
  if (Bits(IsNan(a)) != 0 || Bits(IsNan(b)) != 0) {
    *scale = std::numeric_limits<float>::quiet_NaN();
  }
  const Floats magic = Splat(0x1.8p23f);
  return static_cast<std::int32_t>(
      ReduceAdd(Add(Sub(code_a, magic), Sub(code_b, magic))));
}

void PackRow(DType weight, const float* x, std::int64_t n_in,
             std::byte* packed) {
  if (!IsInt8(weight)) {
    const std::size_t bytes = static_cast<std::size_t>(n_in) * 4;
    std::memcpy(packed, x, bytes);
    std::memset(packed + bytes, 0, PackedRowBytes(weight, n_in) - bytes);
    return;
  }
  const std::int32_t bias = weight == DType::kQ8_0 ? 128 : 8;
  std::byte* out = packed;
  for (std::int64_t k = 0; k < n_in; k += kGroup, out += PackedGroup::kBytes) {
    float scale;
    const std::int32_t sum =
        PackGroup(x + k, reinterpret_cast<std::int8_t*>(out), &scale);
    StoreLe(out + kGroup, scale);
    StoreLe(out + kGroup + 4, -bias * sum);
  }
  std::memset(
      out, 0,
      PackedRowBytes(weight, n_in) - static_cast<std::size_t>(out - packed));
}
