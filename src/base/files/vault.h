// What a key file's key is for. Encryption at rest: whole files sealed with
// AES-256-GCM. Authentication: a MAC over bytes that others can write to.
// File format: docs/formats/sealed.md.
//
// A sealed file is read, decrypted and authenticated as a whole before a byte
// of it is used; it cannot be mapped.
//
// Errors  kIncompatible: sealed under another key, or not sealed at all while a
//         key is given, or the other way round; such files are left alone.
//         kCorrupt: the tag does not match, the file is damaged or forged.
// Threads const methods may run at once.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/hash.h"
#include "hearth/result.h"

namespace hearth {

class Directory;

// A file's bytes, mapped or decrypted, on a page boundary.
struct FileBytes {
  ByteSpan bytes;
  std::shared_ptr<const void> owner;
};

class Vault {
 public:
  static constexpr std::size_t kKeyBytes = 32;
  using Key = std::array<std::uint8_t, kKeyBytes>;

  // 32 bytes, or 64 hex digits and a line end. kInvalidArgument for anything
  // else, and for a file that others may read.
  static Result<std::shared_ptr<const Vault>> FromKeyFile(
      const std::string& path);
  explicit Vault(const Key& key);
  ~Vault();
  Vault(const Vault&) = delete;
  Vault& operator=(const Vault&) = delete;

  // Tells keys apart and says nothing about them.
  const Digest& key_id() const { return key_id_; }
  // What the ids of blocks, and so file names, are made to depend on: who does
  // not have the key cannot tell whether a guessed prompt is stored.
  const Digest& name_key() const { return name_key_; }

  static std::uint64_t SealedBytes(std::uint64_t plain_bytes);
  // The parts as one sealed file. kIo when the system has no random numbers.
  Result<std::vector<std::byte>> Seal(std::span<const ByteSpan> parts) const;
  Result<FileBytes> Open(ByteSpan sealed, const std::string& what) const;

  // HMAC-SHA256 of the parts, for bytes that need not be secret but must come
  // from somebody who has the key. `purpose` keeps kinds of them apart.
  Digest Mac(std::string_view purpose, std::span<const ByteSpan> parts) const;

 private:
  Digest Derive(std::string_view purpose, ByteSpan salt) const {
    return Mac(purpose, std::span(&salt, 1));
  }

  Key key_;
  Digest key_id_, name_key_;
};

bool LooksSealed(ByteSpan start);
// kIncompatible unless `start` begins a file that a reader with this key (null:
// without one) can read.
Result<void> CheckKey(ByteSpan start, const Vault* vault,
                      const std::string& what);

// The plain bytes of a file: mapped without a vault, decrypted with one. What
// holds more than `bytes_max` is kCorrupt, and so is a sealed file whose header
// states another length; neither is read further than its first page.
Result<FileBytes> ReadStored(const Directory& folder, const std::string& name,
                             std::uint64_t bytes_max);
Result<FileBytes> ReadStored(MappedFile mapped, const Vault* vault,
                             std::uint64_t bytes_max);

// A file's parts as they go to the disk: themselves without a vault, sealed
// into `buffer` with one. The result points into `parts`' bytes or into
// `buffer`.
Result<std::vector<ByteSpan>> ForDisk(const Vault* vault,
                                      std::span<const ByteSpan> parts,
                                      std::vector<std::byte>& buffer);

}  // namespace hearth
