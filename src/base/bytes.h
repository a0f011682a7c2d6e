// Little-endian numbers in byte buffers, and a reader that cannot run past the
// end. Every parser of a file from outside goes through ByteReader.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hearth {

static_assert(std::endian::native == std::endian::little,
              "on-disk formats are little-endian and mapped in place");

using ByteSpan = std::span<const std::byte>;

// REQUIRES: sizeof(T) bytes at p. No alignment needed.
template <typename T>
T LoadLe(const void* p) {
  static_assert(std::is_trivially_copyable_v<T>);
  T value;
  std::memcpy(&value, p, sizeof(T));
  return value;
}

template <typename T>
void StoreLe(void* p, T value) {
  static_assert(std::is_trivially_copyable_v<T>);
  std::memcpy(p, &value, sizeof(T));
}

template <typename T>
void AppendLe(std::vector<std::byte>& out, T value) {
  const auto* p = reinterpret_cast<const std::byte*>(&value);
  out.insert(out.end(), p, p + sizeof(T));
}

inline ByteSpan AsBytes(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

inline std::string_view AsText(ByteSpan bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

// a + b, a * b, or nothing on overflow: for sizes that come from a file.
inline std::optional<std::uint64_t> CheckedAdd(std::uint64_t a,
                                               std::uint64_t b) {
  std::uint64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) return std::nullopt;
  return sum;
}
inline std::optional<std::uint64_t> CheckedMul(std::uint64_t a,
                                               std::uint64_t b) {
  std::uint64_t product;
  if (__builtin_mul_overflow(a, b, &product)) return std::nullopt;
  return product;
}

// Reads forward through a span. After a read past the end, `ok()` is false,
// every later read gives zero or empty, and the position stays.
class ByteReader {
 public:
  explicit ByteReader(ByteSpan bytes) : bytes_(bytes) {}

  template <typename T>
  T Read() {
    if (!Need(sizeof(T))) return T{};
    const T value = LoadLe<T>(bytes_.data() + position_);
    position_ += sizeof(T);
    return value;
  }

  ByteSpan Take(std::uint64_t n) {
    if (!Need(n)) return {};
    const ByteSpan taken = bytes_.subspan(position_, n);
    position_ += n;
    return taken;
  }

  bool ok() const { return ok_; }
  std::size_t position() const { return position_; }
  std::size_t remaining() const { return bytes_.size() - position_; }

 private:
  bool Need(std::uint64_t n) {
    if (ok_ && n > remaining()) ok_ = false;
    return ok_;
  }

  ByteSpan bytes_;
  std::size_t position_ = 0;
  bool ok_ = true;
};

}  // namespace hearth
