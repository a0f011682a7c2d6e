// Digests. SHA-256 names things (identity); XXH3 notices damage (checksums).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace hearth {

// 256 bits, compared whole.
struct Digest {
  std::array<std::uint8_t, 32> bytes{};
  friend bool operator==(const Digest&, const Digest&) = default;
  friend auto operator<=>(const Digest&, const Digest&) = default;
};

// Lower-case hex of the first `n_bytes` bytes.
std::string ToHex(const Digest& digest, std::size_t n_bytes = 32);

// SHA-256 over fields. Every field is delimited (length first for the variable
// ones), so that no two different field lists feed the same bytes.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;

  // Raw bytes, no delimiter. For whole files.
  Sha256& Update(ByteSpan bytes);
  // u64 length, then the bytes.
  Sha256& Field(ByteSpan bytes);
  Sha256& Field(std::string_view text) { return Field(AsBytes(text)); }
  Sha256& Field(const Digest& digest);
  Sha256& Field(std::uint64_t value);
  Digest Finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// XXH3, 64 and 128 bits. Fast, not cryptographic.
std::uint64_t Checksum64(ByteSpan bytes);
struct Checksum128Value {
  std::uint64_t low, high;
  friend bool operator==(const Checksum128Value&,
                         const Checksum128Value&) = default;
};
Checksum128Value Checksum128(ByteSpan bytes);

}  // namespace hearth

template <>
struct std::hash<hearth::Digest> {
  std::size_t operator()(const hearth::Digest& d) const noexcept {
    return hearth::LoadLe<std::size_t>(d.bytes.data());
  }
};
