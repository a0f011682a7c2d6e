// The parser of state images, as it meets a file: whatever the bytes, it ends
// with an error or with a payload inside them.
//
// Input  one byte that says what to make right first (else random bytes would
//        never get past the checksums), then the image.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "cache/states/state_layout.h"
#include "store/format/state_image.h"
#include "support/reseal_image.h"

using namespace hearth;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t mode = data[0];
  const auto* bytes = reinterpret_cast<const std::byte*>(data + 1);
  std::vector<std::byte> image(bytes, bytes + size - 1);
  if ((mode & 1) != 0) image.resize((image.size() + 4095) / 4096 * 4096 + 192);
  if ((mode & 2) != 0) ResealImage(image);

  KvSpec spec;
  spec.block_tokens = 16;
  spec.states = {{StateRule::kLastInputs, {2, 4}},
                 {StateRule::kDeltaNet, {1, 4, 4 + (mode >> 6)}}};
  const auto header = ParseStateHeader(image, image.size(), "input");
  if (!header.ok()) return 0;
  (void)CheckSections(image, *header, "input");
  // Ask for what the header says it is, so that the deepest checks run.
  const StateQuery query{{header->model_id, header->format_id, header->root_id,
                          header->parent_id, header->block_id, header->tokens},
                         header->position};
  const auto payload =
      OpenStateImage(image, spec, query, (mode & 4) == 0, "input");
  if (!payload.ok()) return 0;
  if (payload->size() != StateLayout(spec.states).bytes() ||
      payload->data() < image.data() ||
      payload->data() + payload->size() > image.data() + image.size()) {
    std::abort();
  }
  return 0;
}
