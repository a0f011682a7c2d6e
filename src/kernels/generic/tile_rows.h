// Sixteen weight rows, a fixed number of bytes apart, seen at one block.
#pragma once

#include <cstddef>
#include <cstdint>

#include "base/bytes.h"
#include "kernels/target_region.h"

namespace hearth {

class TileRows {
 public:
  TileRows(const std::byte* first, std::int64_t stride)
      : quarter_{first, first + 4 * stride, first + 8 * stride,
                 first + 12 * stride},
        stride_(stride) {}

  HEARTH_INLINE TileRows At(std::int64_t offset) const {
    TileRows moved = *this;
    for (const std::byte*& p : moved.quarter_) {
      p += offset;
      // Hides that rows are at a fixed distance from the first block's, or
      // compilers keep sixteen pointers, which are more than there are
      // registers. Four and the stride are enough to address all.
      asm("" : "+r"(p));
    }
    return moved;
  }
  HEARTH_INLINE const std::byte* Row(int i) const {
    return quarter_[i / 4] + i % 4 * stride_;
  }
  // Four f16 from the starts of rows 4q..4q+3.
  HEARTH_INLINE std::uint64_t Halves4(int q) const {
    std::uint64_t bits = 0;
    for (int i = 3; i >= 0; --i) {
      bits = bits << 16 | LoadLe<std::uint16_t>(Row(4 * q + i));
      asm("" : "+r"(bits));  // or g++ moves the work to the vector ports
    }
    return bits;
  }
  std::int64_t stride() const { return stride_; }

 private:
  const std::byte* quarter_[4];
  std::int64_t stride_;
};

}  // namespace hearth
