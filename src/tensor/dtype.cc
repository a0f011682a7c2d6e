#include "tensor/dtype.h"

#include <array>

#include "base/bytes.h"

namespace hearth {

const DTypeInfo& InfoOf(DType dtype) {
  static constexpr std::array<DTypeInfo, 26> kInfo = {{
      {"F32", 1, 4},        {"F16", 1, 2},      {"BF16", 1, 2},
      {"Q8_0", 32, 34},     {"Q4_0", 32, 18},   {"TG_INT4", 64, 32},
      {"Q4_1", 32, 20},     {"Q5_0", 32, 22},   {"Q5_1", 32, 24},
      {"Q2_K", 256, 84},    {"Q3_K", 256, 110}, {"Q4_K", 256, 144},
      {"Q5_K", 256, 176},   {"Q6_K", 256, 210}, {"IQ4_NL", 32, 18},
      {"IQ4_XS", 256, 136}, {"MXFP4", 32, 17},  {"IQ2_XXS", 256, 66},
      {"IQ2_XS", 256, 74},  {"IQ2_S", 256, 82}, {"IQ3_XXS", 256, 98},
      {"IQ3_S", 256, 110},  {"IQ1_S", 256, 50}, {"IQ1_M", 256, 56},
      {"TQ1_0", 256, 54},   {"TQ2_0", 256, 66},
  }};
  return kInfo[static_cast<std::size_t>(dtype)];
}

bool IsBlockQuantised(DType dtype) {
  return InfoOf(dtype).block_elements > 1 && dtype != DType::kTgInt4;
}

std::optional<std::uint64_t> BytesOf(DType dtype, std::uint64_t n) {
  const DTypeInfo& info = InfoOf(dtype);
  const auto elements = static_cast<std::uint64_t>(info.block_elements);
  if (n % elements != 0) return std::nullopt;
  return CheckedMul(n / elements, static_cast<std::uint64_t>(info.block_bytes));
}

}  // namespace hearth
