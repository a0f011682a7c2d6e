// The number formats that tensors in files have.
//
// A format is a block of `block_elements` values in `block_bytes` bytes; plain
// formats have blocks of one. Layouts of the quantised ones: docs/formats/.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace hearth {

// Part of the model identity; never renumber.
enum class DType : std::uint8_t {
  kF32 = 0,
  kF16 = 1,
  kBF16 = 2,
  kQ8_0 = 3,  // 32 values: f16 scale, 32 x i8
  kQ4_0 = 4,  // 32 values: f16 scale, 16 bytes of nibbles (low half first)
  // .tinygpt int4: 64 values in 32 bytes of nibbles (low nibble first); the f16
  // scales lie in an array of their own (WeightMatrix::scales).
  kTgInt4 = 5,
  // GGUF's other block formats: docs/formats/tensor-types.md.
  kQ4_1 = 6,
  kQ5_0 = 7,
  kQ5_1 = 8,
  kQ2_K = 9,
  kQ3_K = 10,
  kQ4_K = 11,
  kQ5_K = 12,
  kQ6_K = 13,
  kIQ4_NL = 14,
  kIQ4_XS = 15,
  kMXFP4 = 16,
  kIQ2_XXS = 17,
  kIQ2_XS = 18,
  kIQ2_S = 19,
  kIQ3_XXS = 20,
  kIQ3_S = 21,
  kIQ1_S = 22,
  kIQ1_M = 23,
  kTQ1_0 = 24,
  kTQ2_0 = 25,
};

struct DTypeInfo {
  std::string_view name;
  int block_elements;
  int block_bytes;
};

const DTypeInfo& InfoOf(DType dtype);

// A format of GGUF that packs several values into a block with its scale.
bool IsBlockQuantised(DType dtype);

// Bytes of `n` values; nothing when n is no multiple of the block or the size
// overflows.
std::optional<std::uint64_t> BytesOf(DType dtype, std::uint64_t n);

}  // namespace hearth
