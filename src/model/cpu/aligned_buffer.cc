#include "model/cpu/aligned_buffer.h"

#include <cstdlib>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/words/units.h"

namespace hearth {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

AlignedBuffer::~AlignedBuffer() { std::free(data_); }

AlignedBuffer::AlignedBuffer(AlignedBuffer&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)) {}

Result<void> AlignedBuffer::Reserve(std::size_t size) {
  if (size <= size_) return {};
  std::free(std::exchange(data_, nullptr));
  size_ = 0;
  const std::size_t rounded = (size + kAlignment - 1) / kAlignment * kAlignment;
  data_ = static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded));
  if (data_ == nullptr) {
    return {Code::kResourceFull,
            "no memory for " + InUnits(rounded) +
                " that a step computes in; use shorter steps, or free "
                "memory"};
  }
  size_ = rounded;
  return {};
}

std::byte* AlignedBuffer::Get(std::size_t size) const {
  HEARTH_CHECK(size <= size_);
  return data_;
}

}  // namespace hearth
