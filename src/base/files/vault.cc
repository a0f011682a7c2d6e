#include "base/files/vault.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <openssl/rand.h>
#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/file.h"
#include "base/files/directory.h"
#include "base/files/system_error.h"

namespace hearth {
namespace {

// sealed := header ciphertext tag; the header is authenticated, too
constexpr std::array<char, 8> kSealedMagic = {'H',  'K',  'V',    'S',
                                              '\r', '\n', '\x1a', '\n'};
constexpr std::uint32_t kSealedVersion = 1;
constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kKeyIdAt = 16;
constexpr std::size_t kSaltAt = 48;
constexpr std::size_t kNonceAt = 80;
constexpr std::size_t kPlainBytesAt = 96;
constexpr std::size_t kHeaderBytes = 128;
constexpr std::size_t kSaltBytes = 32;
constexpr std::size_t kNonceBytes = 12;
constexpr std::size_t kTagBytes = 16;
constexpr std::size_t kPageBytes = 4096;
// Of one call to the cipher, whose lengths are int.
constexpr std::size_t kStepBytes = std::size_t{1} << 30;

const unsigned char* Bytes(const std::byte* p) {
  return reinterpret_cast<const unsigned char*>(p);
}
unsigned char* Bytes(std::byte* p) {
  return reinterpret_cast<unsigned char*>(p);
}

class Cipher {
 public:
  Cipher(const Digest& key, const std::byte* nonce, bool encrypt)
      : context_(EVP_CIPHER_CTX_new()) {
    ok_ =
        context_ != nullptr &&
        EVP_CipherInit_ex(context_, EVP_aes_256_gcm(), nullptr,
                          key.bytes.data(), Bytes(nonce), encrypt ? 1 : 0) == 1;
  }
  ~Cipher() { EVP_CIPHER_CTX_free(context_); }
  Cipher(const Cipher&) = delete;
  Cipher& operator=(const Cipher&) = delete;

  // `to` null: authenticated only.
  void Update(ByteSpan from, std::byte* to) {
    while (ok_ && !from.empty()) {
      const std::size_t n = std::min(from.size(), kStepBytes);
      int written = 0;
      ok_ = EVP_CipherUpdate(context_, to == nullptr ? nullptr : Bytes(to),
                             &written, Bytes(from.data()),
                             static_cast<int>(n)) == 1;
      from = from.subspan(n);
      if (to != nullptr) to += n;
    }
  }
  void SetTag(const std::byte* tag) {
    unsigned char copy[kTagBytes];
    std::memcpy(copy, tag, kTagBytes);
    ok_ = ok_ && EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_GCM_SET_TAG, kTagBytes,
                                     copy) == 1;
  }
  void GetTag(std::byte* tag) {
    ok_ = ok_ && EVP_CIPHER_CTX_ctrl(context_, EVP_CTRL_GCM_GET_TAG, kTagBytes,
                                     tag) == 1;
  }
  bool Finish() {
    unsigned char nothing[kTagBytes];
    int written = 0;
    ok_ = ok_ && EVP_CipherFinal_ex(context_, nothing, &written) == 1;
    return ok_;
  }
  bool ok() const { return ok_; }

 private:
  EVP_CIPHER_CTX* context_;
  bool ok_;
};

int HexValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

Result<void> CheckSealedLength(ByteSpan sealed, const std::string& what) {
  if (sealed.size() >= Vault::SealedBytes(0) &&
      LoadLe<std::uint64_t>(sealed.data() + kPlainBytesAt) ==
          sealed.size() - Vault::SealedBytes(0)) {
    return {};
  }
  return {Code::kCorrupt, what + ": its length is not the one it states"};
}

bool KeyFromText(std::string_view text, Vault::Key& key) {
  if (text.size() == key.size()) {
    std::memcpy(key.data(), text.data(), key.size());
    return true;
  }
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  if (text.size() != 2 * key.size()) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const int high = HexValue(text[2 * i]), low = HexValue(text[2 * i + 1]);
    if (high < 0 || low < 0) return false;
    key[i] = static_cast<std::uint8_t>(high * 16 + low);
  }
  return true;
}

}  // namespace

Result<std::shared_ptr<const Vault>> Vault::FromKeyFile(
    const std::string& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) == 0 && (st.st_mode & 077) != 0) {
    return {Code::kInvalidArgument,
            path + ": others may read this key; chmod 600 it"};
  }
  HEARTH_ASSIGN(std::string text, ReadTextFile(path, /*size_max=*/4096));
  Key key;
  const bool good = KeyFromText(text, key);
  OPENSSL_cleanse(text.data(), text.size());
  if (!good) {
    return {Code::kInvalidArgument,
            path +
                ": a key is 32 bytes or 64 hex digits; make one with: head -c "
                "32 /dev/urandom > FILE"};
  }
  auto vault = std::make_shared<const Vault>(key);
  OPENSSL_cleanse(key.data(), key.size());
  return vault;
}

Vault::Vault(const Key& key) : key_(key) {
  key_id_ = Derive("hearth key id", {});
  name_key_ = Derive("hearth key names", {});
}

Vault::~Vault() { OPENSSL_cleanse(key_.data(), key_.size()); }

Digest Vault::Mac(std::string_view purpose,
                  std::span<const ByteSpan> parts) const {
  const std::unique_ptr<EVP_MAC, void (*)(EVP_MAC*)> kind(
      EVP_MAC_fetch(nullptr, "HMAC", nullptr), EVP_MAC_free);
  HEARTH_CHECK(kind != nullptr);
  const std::unique_ptr<EVP_MAC_CTX, void (*)(EVP_MAC_CTX*)> context(
      EVP_MAC_CTX_new(kind.get()), EVP_MAC_CTX_free);
  HEARTH_CHECK(context != nullptr);
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {
      OSSL_PARAM_construct_utf8_string("digest", digest, 0),
      OSSL_PARAM_construct_end()};
  Digest out;
  std::size_t n = 0;
  bool ok =
      EVP_MAC_init(context.get(), key_.data(), key_.size(), parameters) == 1 &&
      EVP_MAC_update(context.get(), Bytes(AsBytes(purpose).data()),
                     purpose.size()) == 1;
  for (const ByteSpan part : parts) {
    ok = ok &&
         EVP_MAC_update(context.get(), Bytes(part.data()), part.size()) == 1;
  }
  ok = ok && EVP_MAC_final(context.get(), out.bytes.data(), &n,
                           out.bytes.size()) == 1;
  HEARTH_CHECK(ok && n == out.bytes.size());
  return out;
}

std::uint64_t Vault::SealedBytes(std::uint64_t plain_bytes) {
  return kHeaderBytes + plain_bytes + kTagBytes;
}

Result<std::vector<std::byte>> Vault::Seal(
    std::span<const ByteSpan> parts) const {
  std::uint64_t plain_bytes = 0;
  for (const ByteSpan part : parts) plain_bytes += part.size();
  std::vector<std::byte> out(SealedBytes(plain_bytes));
  std::byte* p = out.data();
  std::memcpy(p, kSealedMagic.data(), kSealedMagic.size());
  StoreLe(p + kVersionAt, kSealedVersion);
  std::memcpy(p + kKeyIdAt, key_id_.bytes.data(), key_id_.bytes.size());
  StoreLe(p + kPlainBytesAt, plain_bytes);
  // A key of its own for each file: nonces cannot meet, however many there are.
  if (RAND_bytes(Bytes(p + kSaltAt), kSaltBytes) != 1 ||
      RAND_bytes(Bytes(p + kNonceAt), kNonceBytes) != 1) {
    return {Code::kIo, "the system gives no random numbers; not encrypted"};
  }
  Cipher cipher(Derive("hearth file key", {p + kSaltAt, kSaltBytes}),
                p + kNonceAt, /*encrypt=*/true);
  cipher.Update({p, kHeaderBytes}, nullptr);
  std::byte* to = p + kHeaderBytes;
  for (const ByteSpan part : parts) {
    cipher.Update(part, to);
    to += part.size();
  }
  (void)cipher.Finish();
  cipher.GetTag(to);
  if (!cipher.ok()) return {Code::kIo, "encryption failed"};
  return out;
}

Result<FileBytes> Vault::Open(ByteSpan sealed, const std::string& what) const {
  HEARTH_TRY(CheckKey(sealed, this, what));
  const std::byte* p = sealed.data();
  if (LoadLe<std::uint32_t>(p + kVersionAt) != kSealedVersion) {
    return {Code::kIncompatible, what + ": another version of encryption"};
  }
  HEARTH_TRY(CheckSealedLength(sealed, what));
  const std::size_t n = sealed.size() - SealedBytes(0);
  const std::size_t room = (n / kPageBytes + 1) * kPageBytes;
  std::shared_ptr<std::byte> plain(
      static_cast<std::byte*>(std::aligned_alloc(kPageBytes, room)), std::free);
  if (plain == nullptr) {
    return {Code::kResourceFull, what + ": no memory to decrypt it"};
  }
  Cipher cipher(Derive("hearth file key", sealed.subspan(kSaltAt, kSaltBytes)),
                p + kNonceAt, /*encrypt=*/false);
  cipher.Update(sealed.first(kHeaderBytes), nullptr);
  cipher.Update(sealed.subspan(kHeaderBytes, n), plain.get());
  cipher.SetTag(p + kHeaderBytes + n);
  if (!cipher.Finish()) {
    return {Code::kCorrupt, what + ": damaged or forged (wrong tag)"};
  }
  return FileBytes{{plain.get(), n}, plain};
}

bool LooksSealed(ByteSpan start) {
  return start.size() >= kSealedMagic.size() &&
         std::memcmp(start.data(), kSealedMagic.data(), kSealedMagic.size()) ==
             0;
}

Result<void> CheckKey(ByteSpan start, const Vault* vault,
                      const std::string& what) {
  if (vault == nullptr) {
    if (!LooksSealed(start)) return {};
    return {Code::kIncompatible,
            what + ": encrypted, and its key was not given"};
  }
  if (!LooksSealed(start)) {
    return {Code::kIncompatible,
            what + ": not encrypted, so not used with a key"};
  }
  if (start.size() < kHeaderBytes) {
    return {Code::kCorrupt, what + ": shorter than its header"};
  }
  if (std::memcmp(start.data() + kKeyIdAt, vault->key_id().bytes.data(),
                  vault->key_id().bytes.size()) != 0) {
    return {Code::kIncompatible, what + ": encrypted under another key"};
  }
  return {};
}

Result<FileBytes> ReadStored(MappedFile mapped, const Vault* vault,
                             std::uint64_t bytes_max) {
  const ByteSpan bytes = mapped.bytes();
  const std::string& what = mapped.path();
  const std::uint64_t length_max =
      vault == nullptr ? bytes_max : Vault::SealedBytes(bytes_max);
  if (bytes.size() > length_max) {
    return {Code::kCorrupt, what + ": longer than such a file can be"};
  }
  HEARTH_TRY(
      PopulateMapped(bytes.first(std::min(bytes.size(), kPageBytes)), what));
  HEARTH_TRY(CheckKey(bytes, vault, what));
  if (vault != nullptr) HEARTH_TRY(CheckSealedLength(bytes, what));
  HEARTH_TRY(mapped.Populate());
  if (vault != nullptr) return vault->Open(bytes, what);
  auto file = std::make_shared<const MappedFile>(std::move(mapped));
  return FileBytes{file->bytes(), file};
}

Result<FileBytes> ReadStored(const Directory& folder, const std::string& name,
                             std::uint64_t bytes_max) {
  HEARTH_ASSIGN(MappedFile mapped, folder.Map(name));
  return ReadStored(std::move(mapped), folder.vault(), bytes_max);
}

Result<std::vector<ByteSpan>> ForDisk(const Vault* vault,
                                      std::span<const ByteSpan> parts,
                                      std::vector<std::byte>& buffer) {
  if (vault == nullptr) {
    return std::vector<ByteSpan>(parts.begin(), parts.end());
  }
  HEARTH_ASSIGN(buffer, vault->Seal(parts));
  return std::vector<ByteSpan>{buffer};
}

}  // namespace hearth
