#include "cache/tile_copy.h"

#include <cstring>

#include "base/check.h"

namespace hearth {

void CopyLayerTokens(const KvSpec& spec, const KvLayout& from,
                     const std::byte* from_layer, const KvLayout& to,
                     std::byte* to_layer, int n) {
  HEARTH_CHECK(n <= from.stride() && n <= to.stride());
  const auto value_bytes = static_cast<std::size_t>(BytesPerValue(spec.format));
  const auto live = static_cast<std::size_t>(n);
  const auto head_dim = static_cast<std::size_t>(spec.head_dim);
  const std::size_t from_row =
      static_cast<std::size_t>(from.stride()) * value_bytes;
  const std::size_t to_row = static_cast<std::size_t>(to.stride()) * value_bytes;
  for (int head = 0; head < spec.n_kv_heads; ++head) {
    const std::byte* from_keys = from_layer + from.key_tile(0, head);
    std::byte* to_keys = to_layer + to.key_tile(0, head);
    for (std::size_t d = 0; d < head_dim; ++d) {
      std::memcpy(to_keys + d * to_row, from_keys + d * from_row,
                  live * value_bytes);
    }
    std::memcpy(to_layer + to.value_tile(0, head),
                from_layer + from.value_tile(0, head),
                live * head_dim * value_bytes);
  }
}

void CopyBlockTokens(const KvSpec& spec, const KvLayout& from,
                     const std::byte* from_block, const KvLayout& to,
                     std::byte* to_block, int n) {
  for (int layer = 0; layer < spec.n_kv_layers; ++layer) {
    CopyLayerTokens(spec, from, from_block + from.layer_offset(layer), to,
                    to_block + to.layer_offset(layer), n);
  }
}

}  // namespace hearth
