// The parser of block images, as it meets a file: whatever the bytes, it ends
// with an error or with a payload inside them.
//
// Input  one byte that says what to make right first (else random bytes would
//        never get past the checksums), then the image.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "cache/kv_layout.h"
#include "store/format/block_image.h"
#include "support/reseal_image.h"

using namespace hearth;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t mode = data[0];
  const auto* bytes = reinterpret_cast<const std::byte*>(data + 1);
  std::vector<std::byte> image(bytes, bytes + size - 1);
  if ((mode & 1) != 0) image.resize((image.size() + 4095) / 4096 * 4096);
  if ((mode & 2) != 0) ResealImage(image);

  const KvSpec spec(UniformKv{.n_layers = 1 + (mode >> 6),
                              .n_heads = 1,
                              .head_dim = 4,
                              .key_format = KvFormat::kF16,
                              .value_format = KvFormat::kF16,
                              .block_tokens = 16});
  const auto header = ParseBlockHeader(image, image.size(), "input");
  if (!header.ok()) return 0;
  (void)CheckSections(image, *header, "input");
  // Ask for what the header says it is, so that the deepest checks run.
  const BlockQuery query{header->model_id,  header->format_id, header->root_id,
                         header->parent_id, header->block_id,  header->tokens};
  const auto opened =
      OpenBlockImage(image, spec, query, (mode & 4) == 0, "input");
  if (!opened.ok()) return 0;
  const ByteSpan payload = opened->payload;
  const int n_tokens = static_cast<int>(header->tokens.size());
  const int first = opened->first_token;
  if (first < 0 || first >= n_tokens ||
      payload.size() != KvLayout(spec, n_tokens - first).block_bytes() ||
      payload.data() < image.data() ||
      payload.data() + payload.size() > image.data() + image.size()) {
    std::abort();
  }
  if (first > 0) (void)IdBefore(*header);
  return 0;
}
