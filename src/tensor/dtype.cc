#include "tensor/dtype.h"

#include <array>

#include "base/bytes.h"

namespace hearth {

const DTypeInfo& InfoOf(DType dtype) {
  static constexpr std::array<DTypeInfo, 6> kInfo = {{
      {"F32", 1, 4},
      {"F16", 1, 2},
      {"BF16", 1, 2},
      {"Q8_0", 32, 34},
      {"Q4_0", 32, 18},
      {"TG_INT4", 64, 32},
  }};
  return kInfo[static_cast<std::size_t>(dtype)];
}

std::optional<std::uint64_t> BytesOf(DType dtype, std::uint64_t n) {
  const DTypeInfo& info = InfoOf(dtype);
  const auto elements = static_cast<std::uint64_t>(info.block_elements);
  if (n % elements != 0) return std::nullopt;
  return CheckedMul(n / elements, static_cast<std::uint64_t>(info.block_bytes));
}

}  // namespace hearth
