// The parser of prompt files (manifests and bundles): whatever the bytes, it
// ends with an error or with images that lie inside them.
//
// Input  one byte that says what to make right first, then the file.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "store/format/block_image.h"
#include "store/format/prompt_file.h"

namespace {

using namespace hearth;

void Reseal(std::vector<std::byte>& file) {
  if (file.size() < kPromptEntriesAt) return;
  const auto header_bytes =
      LoadLe<std::uint32_t>(file.data() + kPromptHeaderBytesAt);
  if (header_bytes < kPromptVersionAt || header_bytes > file.size()) return;
  StoreLe(file.data() + kPromptChecksumAt,
          Checksum64(ByteSpan(file).subspan(kPromptVersionAt,
                                            header_bytes - kPromptVersionAt)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t mode = data[0];
  const auto* bytes = reinterpret_cast<const std::byte*>(data + 1);
  std::vector<std::byte> file(bytes, bytes + size - 1);
  if ((mode & 1) != 0) file.resize((file.size() + 4095) / 4096 * 4096);
  if ((mode & 8) != 0 && file.size() >= kPromptEntriesAt) {
    StoreLe(file.data() + kPromptFileBytesAt, std::uint64_t{file.size()});
  }
  if ((mode & 2) != 0) Reseal(file);

  const auto header = ParsePromptFile(file, "input");
  if (!header.ok()) return 0;
  for (std::size_t i = 0; i < header->entries.size(); ++i) {
    const PromptEntry& entry = header->entries[i];
    if (header->BlockStart(i) > header->FirstOf(i) ||
        header->FirstOf(i) >= entry.end) {
      std::abort();
    }
    if (entry.image_at == 0) continue;
    if (entry.image_at > file.size() ||
        entry.image_bytes > file.size() - entry.image_at) {
      std::abort();
    }
    const auto image = ParseBlockHeader(
        ByteSpan(file).subspan(entry.image_at, entry.image_bytes),
        entry.image_bytes, "image");
    if (image.ok()) (void)CheckEntry(*header, i, *image, "image");
  }
  return 0;
}
