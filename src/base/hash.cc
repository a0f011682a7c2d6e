#include "base/hash.h"

#include <openssl/evp.h>
#include <xxhash.h>
// Picks AVX-512, AVX2 or SSE2 at run time; the values are the same. Everything
// that a warm start verifies goes through here.
#ifdef HEARTH_HAS_XXHASH_DISPATCH
#include <xxh_x86dispatch.h>
#endif

#include "base/check.h"

namespace hearth {

struct Sha256::State {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  ~State() { EVP_MD_CTX_free(context); }
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  HEARTH_CHECK(state_->context != nullptr);
  HEARTH_CHECK(EVP_DigestInit_ex(state_->context, EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;

Sha256& Sha256::Update(ByteSpan bytes) {
  HEARTH_CHECK(EVP_DigestUpdate(state_->context, bytes.data(), bytes.size()) ==
               1);
  return *this;
}

Sha256& Sha256::Field(ByteSpan bytes) {
  Field(std::uint64_t{bytes.size()});
  return Update(bytes);
}

Sha256& Sha256::Field(const Digest& digest) {
  return Update(std::as_bytes(std::span(digest.bytes)));
}

Sha256& Sha256::Field(std::uint64_t value) {
  return Update(std::as_bytes(std::span(&value, 1)));
}

Digest Sha256::Finish() {
  Digest digest;
  unsigned int n = 0;
  HEARTH_CHECK(EVP_DigestFinal_ex(state_->context, digest.bytes.data(), &n) ==
               1);
  HEARTH_CHECK(n == digest.bytes.size());
  return digest;
}

std::string ToHex(const Digest& digest, std::size_t n_bytes) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string text;
  for (std::size_t i = 0; i < n_bytes && i < digest.bytes.size(); ++i) {
    text += kHex[digest.bytes[i] >> 4];
    text += kHex[digest.bytes[i] & 15];
  }
  return text;
}

std::uint64_t Checksum64(ByteSpan bytes) {
  return XXH3_64bits(bytes.data(), bytes.size());
}

Checksum128Value Checksum128(ByteSpan bytes) {
  const XXH128_hash_t h = XXH3_128bits(bytes.data(), bytes.size());
  return {h.low64, h.high64};
}

}  // namespace hearth
