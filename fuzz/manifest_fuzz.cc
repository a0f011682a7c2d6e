// The parser of prompt files (manifests and bundles): whatever the bytes, it
// ends with an error or with images that lie inside them.
//
// Input  one byte that says what to make right first, then the file.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "store/block_image.h"
#include "store/prompt_file.h"

namespace {

using namespace hearth;

void Reseal(std::vector<std::byte>& file) {
  if (file.size() < kImageAlign) return;
  const auto header_bytes =
      LoadLe<std::uint32_t>(file.data() + kPromptHeaderBytesAt);
  if (header_bytes < kImageAlign || header_bytes > file.size()) return;
  StoreLe(file.data() + kPromptChecksumAt,
          Checksum64(ByteSpan(file).subspan(kPromptVersionAt,
                                            header_bytes - kPromptVersionAt)));
}

// Writes the chain of ids that the tokens imply.
void Rechain(std::vector<std::byte>& file) {
  if (file.size() < kImageAlign) return;
  const auto n_tokens =
      LoadLe<std::uint32_t>(file.data() + kPromptTokenCountAt);
  const auto step = LoadLe<std::uint32_t>(file.data() + kPromptBlockTokensAt);
  if (step == 0 || n_tokens > 4096) return;
  Digest parent;
  std::memcpy(parent.bytes.data(), file.data() + kPromptRootIdAt, 32);
  std::size_t at = (kPromptTokensAt + std::size_t{4} * n_tokens + 7) / 8 * 8;
  for (std::uint32_t first = 0; first < n_tokens; first += step) {
    const std::uint32_t n = std::min(step, n_tokens - first);
    std::vector<std::int32_t> tokens(n);
    const std::size_t tokens_at = kPromptTokensAt + std::size_t{4} * first;
    if (tokens_at + std::size_t{4} * n > file.size() ||
        at + kPromptEntryBytes > file.size()) {
      return;
    }
    std::memcpy(tokens.data(), file.data() + tokens_at, std::size_t{4} * n);
    parent = ChildId(parent, tokens);
    std::memcpy(file.data() + at, parent.bytes.data(), 32);
    at += kPromptEntryBytes;
    if (step > n_tokens) return;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t mode = data[0];
  const auto* bytes = reinterpret_cast<const std::byte*>(data + 1);
  std::vector<std::byte> file(bytes, bytes + size - 1);
  if ((mode & 1) != 0) file.resize((file.size() + 4095) / 4096 * 4096);
  if ((mode & 8) != 0 && file.size() >= kImageAlign) {
    StoreLe(file.data() + kPromptFileBytesAt, std::uint64_t{file.size()});
  }
  if ((mode & 4) != 0) Rechain(file);
  if ((mode & 2) != 0) Reseal(file);

  const auto header = ParsePromptFile(file, "input");
  if (!header.ok()) return 0;
  std::size_t n_tokens = 0;
  for (std::size_t i = 0; i < header->blocks.size(); ++i) {
    n_tokens += header->BlockTokens(i).size();
    const PromptEntry& entry = header->blocks[i];
    if (entry.image_at == 0) continue;
    if (entry.image_at > file.size() ||
        entry.image_bytes > file.size() - entry.image_at) {
      std::abort();
    }
    (void)ParseBlockHeader(
        ByteSpan(file).subspan(entry.image_at, entry.image_bytes),
        entry.image_bytes, "image");
  }
  if (n_tokens != header->tokens.size()) std::abort();
  return 0;
}
