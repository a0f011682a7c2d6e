// A 64-byte aligned buffer that grows and never shrinks: memory that a step
// uses and the next one uses again.
#pragma once

#include <cstddef>

#include "hearth/result.h"

namespace hearth {

class AlignedBuffer {
 public:
  ~AlignedBuffer();
  AlignedBuffer() = default;
  AlignedBuffer(AlignedBuffer&& other) noexcept;
  AlignedBuffer& operator=(AlignedBuffer&&) = delete;

  // Makes it at least `size` bytes long; growing loses what is in it.
  // kResourceFull when there is no memory; then it is empty.
  Result<void> Reserve(std::size_t size);
  Result<void> ReserveFloats(std::size_t n) {
    return Reserve(n * sizeof(float));
  }

  // REQUIRES: as much was reserved.
  std::byte* Get(std::size_t size) const;
  float* GetFloats(std::size_t n) const {
    return reinterpret_cast<float*>(Get(n * sizeof(float)));
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace hearth
