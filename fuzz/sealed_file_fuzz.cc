// The parser of encrypted files: whatever the bytes, it ends with an error or,
// for what this key sealed, with the text that was sealed.
//
// Input  one byte, unused, then the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "base/files/vault.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace hearth;
  if (size == 0) return 0;
  Vault::Key key;
  for (std::size_t i = 0; i < key.size(); ++i) {
    key[i] = static_cast<std::uint8_t>(i);
  }
  const Vault vault(key);
  const ByteSpan file = std::as_bytes(std::span(data + 1, size - 1));
  const auto opened = vault.Open(file, "fuzz");
  // The tag cannot be forged: what opens is the seed.
  if (opened.ok() && AsText(opened->bytes) != "hello") std::abort();
  (void)CheckKey(file, nullptr, "fuzz");
  return 0;
}
