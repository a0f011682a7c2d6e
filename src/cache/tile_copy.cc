#include "cache/tile_copy.h"

#include <cstring>

#include "base/check.h"

namespace hearth {

void CopyLayerTokens(const KvSpec& spec, const KvLayout& from,
                     const std::byte* from_layer, const KvLayout& to,
                     std::byte* to_layer, int n) {
  HEARTH_CHECK(n <= from.stride() && n <= to.stride() &&
               from.key_format() == to.key_format() &&
               from.value_format() == to.value_format());
  const auto bytes = [](KvFormat format, std::int64_t count) {
    return static_cast<std::size_t>(KvRowBytes(format, count));
  };
  const std::size_t live_keys = bytes(from.key_format(), n);
  const std::size_t live_values =
      bytes(from.value_format(), std::int64_t{n} * spec.head_dim);
  const std::size_t from_row = bytes(from.key_format(), from.stride());
  const std::size_t to_row = bytes(to.key_format(), to.stride());
  const auto head_dim = static_cast<std::size_t>(spec.head_dim);
  for (int head = 0; head < spec.n_kv_heads; ++head) {
    const std::byte* from_keys = from_layer + from.key_tile(0, head);
    std::byte* to_keys = to_layer + to.key_tile(0, head);
    for (std::size_t d = 0; d < head_dim; ++d) {
      std::memcpy(to_keys + d * to_row, from_keys + d * from_row, live_keys);
    }
    std::memcpy(to_layer + to.value_tile(0, head),
                from_layer + from.value_tile(0, head), live_values);
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
