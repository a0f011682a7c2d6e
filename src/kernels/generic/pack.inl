// Activations as the matmuls take them.
//
//   float weights  float[n_in], padded with zeros to a multiple of 16
//   block formats  per group of 32: the int8 codes, their float scale, and what
//                  the format needs of sum(codes), for the whole group or for
//                  each half of it (see PackShape). Together, so that a row
//                  needs one pointer.
// Rows are padded to 64 bytes.

inline constexpr std::int64_t kGroup = 32;

struct PackShape {
  int sums;  // 1, or 2 where weight scales span 16 values
  // With minimums: float scale * sum(codes). Without: int32 -bias * sum(codes).
  bool minimums;
  std::int32_t bias;  // what the weight codes have too much

  std::int64_t group_bytes() const { return kGroup + 4 + 4 * sums; }
};

PackShape PackShapeOf(DType weight) {
  switch (weight) {
    case DType::kQ8_0:
    case DType::kIQ4_NL:
    case DType::kIQ4_XS:
      return {1, false, 128};  // signed codes made unsigned
    case DType::kQ4_0:
      return {1, false, 8};
    case DType::kQ5_0:
      return {1, false, 16};
    case DType::kMXFP4:
      return {1, false, 12};
    case DType::kQ4_1:
    case DType::kQ5_1:
    case DType::kQ4_K:
    case DType::kQ5_K:
      return {1, true, 0};
    case DType::kQ6_K:
      return {2, false, 32};
    case DType::kQ3_K:
      return {2, false, 4};
    case DType::kQ2_K:
      return {2, true, 0};
    case DType::kIQ2_XXS:
    case DType::kIQ3_XXS:
    case DType::kIQ3_S:
    case DType::kIQ1_S:
    case DType::kTQ1_0:
    case DType::kTQ2_0:
      return {1, false, kSpelledBias};
    case DType::kIQ2_XS:
    case DType::kIQ2_S:
    case DType::kIQ1_M:
      return {2, false, kSpelledBias};
    case DType::kF32:
    case DType::kF16:
    case DType::kBF16:
    case DType::kTgInt4:
      break;
  }
  return {};
}

template <int kSums>
struct PackedGroup {
  static constexpr std::int64_t kBytes = kGroup + 4 + 4 * kSums;

  const std::byte* p;

  const std::int8_t* codes() const {
    return reinterpret_cast<const std::int8_t*>(p);
  }
  float scale() const { return LoadLe<float>(p + kGroup); }
  std::int32_t start(int i) const {
    return LoadLe<std::int32_t>(p + kGroup + 4 + 4 * i);
  }
  float sum(int i) const { return LoadLe<float>(p + kGroup + 4 + 4 * i); }
};

std::size_t RowBytes(DType weight, std::int64_t n_in) {
  const std::int64_t bytes =
      IsBlockQuantised(weight)
          ? n_in / kGroup * PackShapeOf(weight).group_bytes()
          : n_in * 4;
  std::int64_t padded = RoundUp(bytes, 64);
  // Rows a multiple of the L1 way size apart would all fall into one set.
  if (padded % 2048 == 0) padded += 64;
  return static_cast<std::size_t>(padded);
}

// Writes 32 codes and the scale; sums: of the codes of each half.
HEARTH_INLINE void PackGroup(const float* x, std::int8_t* codes, float* scale,
                             std::int32_t* sums) {
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
  sums[0] = static_cast<std::int32_t>(ReduceAdd(Sub(code_a, magic)));
  sums[1] = static_cast<std::int32_t>(ReduceAdd(Sub(code_b, magic)));
}

void PackOneRow(DType weight, const float* x, std::int64_t n_in,
                std::byte* packed) {
  if (!IsBlockQuantised(weight)) {
    const std::size_t bytes = static_cast<std::size_t>(n_in) * 4;
    std::memcpy(packed, x, bytes);
    std::memset(packed + bytes, 0, RowBytes(weight, n_in) - bytes);
    return;
  }
  const PackShape shape = PackShapeOf(weight);
  std::byte* out = packed;
  for (std::int64_t k = 0; k < n_in; k += kGroup) {
    float scale;
    std::int32_t sums[2];
    PackGroup(x + k, reinterpret_cast<std::int8_t*>(out), &scale, sums);
    StoreLe(out + kGroup, scale);
    if (shape.sums == 1) sums[0] += sums[1];
    for (int i = 0; i < shape.sums; ++i) {
      std::byte* to = out + kGroup + 4 + 4 * i;
      if (shape.minimums) {
        StoreLe(to, scale * static_cast<float>(sums[i]));
      } else {
        StoreLe(to, -shape.bias * sums[i]);
      }
    }
    out += shape.group_bytes();
  }
  std::memset(out, 0,
              RowBytes(weight, n_in) - static_cast<std::size_t>(out - packed));
}
