// Hash tables that are plain arrays: they can be built once, written to a file
// and used from a mapping without a copy.
//
// Both use linear probing at a load of at most two thirds. Keys come from
// files, so a file could be made to collide on purpose; a build whose longest
// probe passes kProbeMax starts again with another seed.
//
// Shapes  slots is [power of two].
#pragma once

#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace hearth {

inline constexpr std::uint32_t kNoId = 0xFFFFFFFF;

// Mixes two words; the high and the low half of the product both count.
inline std::uint64_t FoldMultiply(std::uint64_t a, std::uint64_t b) {
  __extension__ using Wide = unsigned __int128;
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product) ^
         static_cast<std::uint64_t>(product >> 64);
}

// A hash of short byte strings. Not for disk identity, not cryptographic; the
// compiled form stores tables built with it, so a change needs a new version
// there.
inline std::uint64_t HashText(std::string_view text, std::uint64_t seed) {
  constexpr std::uint64_t kA = 0x9E3779B97F4A7C15ull;
  constexpr std::uint64_t kB = 0xD6E8FEB86659FD93ull;
  const char* p = text.data();
  std::size_t n = text.size();
  std::uint64_t h = seed ^ (n * kB);
  while (n > 8) {
    std::uint64_t word;
    std::memcpy(&word, p, 8);
    h = FoldMultiply(h ^ word, kA);
    p += 8;
    n -= 8;
  }
  std::uint64_t last = 0;
  if (n >= 4) {
    std::uint32_t low, high;
    std::memcpy(&low, p, 4);
    std::memcpy(&high, p + n - 4, 4);
    last = static_cast<std::uint64_t>(high) << 32 | low;
  } else if (n > 0) {
    last =
        static_cast<unsigned char>(p[0]) |
        static_cast<std::uint64_t>(static_cast<unsigned char>(p[n / 2])) << 8 |
        static_cast<std::uint64_t>(static_cast<unsigned char>(p[n - 1])) << 16;
  }
  return FoldMultiply(h ^ last, kB ^ kA);
}

inline std::uint64_t HashPair(std::uint32_t left, std::uint32_t right,
                              std::uint64_t seed) {
  return FoldMultiply((static_cast<std::uint64_t>(left) << 32 | right) ^ seed,
                      0x9E3779B97F4A7C15ull);
}

// An array that is either owned or a view of a mapping.
template <typename T>
class FlatArray {
 public:
  FlatArray() = default;
  explicit FlatArray(std::vector<T> owned)
      : owned_(std::move(owned)), view_(owned_) {}
  explicit FlatArray(std::span<const T> view) : view_(view) {}
  FlatArray(FlatArray&& other) noexcept { *this = std::move(other); }
  FlatArray& operator=(FlatArray&& other) noexcept {
    const bool owns = !other.owned_.empty();
    owned_ = std::move(other.owned_);
    view_ = owns ? std::span<const T>(owned_) : other.view_;
    other.owned_.clear();
    other.view_ = {};
    return *this;
  }

  const T& operator[](std::size_t i) const { return view_[i]; }
  const T* data() const { return view_.data(); }
  std::size_t size() const { return view_.size(); }
  bool empty() const { return view_.empty(); }
  std::span<const T> span() const { return view_; }

 private:
  std::vector<T> owned_;
  std::span<const T> view_;
};

// One piece of text: the high half of its hash, and its id. id == kNoId: empty.
struct TextSlot {
  std::uint32_t tag;
  std::uint32_t id;
};

// One merge: the pair (left, right) becomes `id`. Lower `rank` merges first.
// left == kNoId: empty.
struct MergeSlot {
  std::uint32_t left, right;
  std::uint32_t rank;
  std::uint32_t id;
};

inline constexpr std::size_t kProbeMax = 192;
inline constexpr std::uint64_t kSeedsMax = 8;

// A power of two that keeps `n` entries at two thirds load or less.
inline std::size_t SlotCount(std::size_t n) {
  std::size_t slots = 16;
  while (slots * 2 < n * 3) slots *= 2;
  return slots;
}

}  // namespace hearth
