// An entry of the response store.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <variant>

#include "serve/wire/store/image.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  const hearth::ByteSpan bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto read = hearth::serve::ReadImage(bytes, "input");
  if (!read.ok()) return 0;
  // What is read is written again byte for byte.
  const std::string again = std::visit(
      [](const auto& entry) { return hearth::serve::ImageOf(entry); }, *read);
  if (again != hearth::AsText(bytes)) std::abort();
  return 0;
}
