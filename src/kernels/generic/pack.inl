// Activations as the matmuls take them.
//
//   float weights  float[n_in], padded with zeros to a multiple of 16
//   int8 weights   int8[n_in] codes, then per group of 32 a float scale, then
//                  per group an int32 -bias * sum(codes), where bias is what
//                  the weight codes have too much (128 for Q8_0 as unsigned, 8
//                  for Q4_0)
// Rows are padded to 64 bytes.

inline constexpr std::int64_t kGroup = 32;

constexpr std::int64_t RoundUp(std::int64_t n, std::int64_t to) {
  return (n + to - 1) / to * to;
}

bool IsInt8(DType weight) {
  return weight == DType::kQ8_0 || weight == DType::kQ4_0;
}

struct PackedInt8 {
  const std::int8_t* codes;
  const std::byte* scales;  // float, one a group
  const std::byte* starts;  // int32, one a group

  PackedInt8() = default;
  PackedInt8(const std::byte* row, std::int64_t n_groups)
      : codes(reinterpret_cast<const std::int8_t*>(row)),
        scales(row + n_groups * kGroup),
        starts(scales + n_groups * 4) {}
};

std::size_t PackedRowBytes(DType weight, std::int64_t n_in) {
  const std::int64_t bytes =
      IsInt8(weight) ? n_in / kGroup * (kGroup + 8) : n_in * 4;
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
  const std::int64_t n_groups = n_in / kGroup;
  const std::int32_t bias = weight == DType::kQ8_0 ? 128 : 8;
  auto* codes = reinterpret_cast<std::int8_t*>(packed);
  std::byte* scales = packed + n_groups * kGroup;
  std::byte* starts = scales + n_groups * 4;
  for (std::int64_t g = 0; g < n_groups; ++g) {
    float scale;
    const std::int32_t sum =
        PackGroup(x + g * kGroup, codes + g * kGroup, &scale);
    StoreLe(scales + g * 4, scale);
    StoreLe(starts + g * 4, -bias * sum);
  }
}
