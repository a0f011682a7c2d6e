#include "tensor/quantize.h"

#include <limits>

#include "base/bytes.h"
#include "base/check.h"
#include "tensor/quantize/block.h"

namespace hearth {
namespace {

constexpr float kHalfMax = 65504.0f;
// The largest float that does not round to BF16's infinity.
constexpr float kBrainMax = 0x1.fep127f;

void PutF32(const float* x, const float*, std::byte* out) { StoreLe(out, *x); }
void PutF16(const float* x, const float*, std::byte* out) { PutHalf(*x, out); }
void PutBF16(const float* x, const float*, std::byte* out) {
  StoreLe(out, ToBF16(std::clamp(*x, -kBrainMax, kBrainMax)).bits);
}

using BlockFunction = void (*)(const float* x, const float* importance,
                               std::byte* out);

BlockFunction FunctionFor(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return PutF32;
    case DType::kF16:
      return PutF16;
    case DType::kBF16:
      return PutBF16;
    case DType::kQ8_0:
      return PutQ8_0;
    case DType::kQ4_0:
      return PutQ4_0;
    case DType::kQ4_1:
      return PutQ4_1;
    case DType::kQ5_0:
      return PutQ5_0;
    case DType::kQ5_1:
      return PutQ5_1;
    case DType::kQ2_K:
      return PutQ2_K;
    case DType::kQ3_K:
      return PutQ3_K;
    case DType::kQ4_K:
      return PutQ4_K;
    case DType::kQ5_K:
      return PutQ5_K;
    case DType::kQ6_K:
      return PutQ6_K;
    case DType::kIQ4_NL:
      return PutIq4Nl;
    case DType::kIQ4_XS:
      return PutIq4Xs;
    default:  // formats that are read only
      break;
  }
  return nullptr;
}

}  // namespace

float LargestIn(DType dtype) {
  switch (dtype) {
    case DType::kF32:
      return std::numeric_limits<float>::max();
    case DType::kBF16:
      return kBrainMax;
    default:
      // F16, or a scale of that size: no block format is for larger weights.
      return kHalfMax;
  }
}

void QuantizeRow(DType dtype, const float* x, std::int64_t n, std::byte* out,
                 const float* importance) {
  const DTypeInfo& info = InfoOf(dtype);
  const BlockFunction quantize = FunctionFor(dtype);
  HEARTH_CHECK(quantize != nullptr && n % info.block_elements == 0);
  for (std::int64_t i = 0; i < n; i += info.block_elements) {
    quantize(x + i, importance == nullptr ? nullptr : importance + i, out);
    out += info.block_bytes;
  }
}

}  // namespace hearth
