#include "cache/tile_copy.h"

#include <cstring>

#include "base/check.h"

namespace hearth {

void CopyLayerTokens(const KvLayer& layer, const KvLayerLayout& from,
                     const std::byte* from_bytes, int from_at,
                     const KvLayerLayout& to, std::byte* to_bytes, int to_at,
                     int n) {
  HEARTH_CHECK(from_at >= 0 && to_at >= 0 && from_at + n <= from.stride() &&
               to_at + n <= to.stride() &&
               from.key_format() == to.key_format() &&
               from.value_format() == to.value_format());
  const auto bytes = [](KvFormat format, std::int64_t count) {
    return static_cast<std::size_t>(KvRowBytes(format, count));
  };
  const KvFormat keys = from.key_format(), values = from.value_format();
  const std::int64_t value_dim = layer.value_dim;
  const std::size_t live_keys = bytes(keys, n);
  const std::size_t live_values = bytes(values, n * value_dim);
  const std::size_t from_row = bytes(keys, from.stride());
  const std::size_t to_row = bytes(keys, to.stride());
  const auto key_dim = static_cast<std::size_t>(layer.key_dim);
  for (int head = 0; head < layer.n_heads; ++head) {
    const std::byte* from_keys =
        from_bytes + from.key_tile(head) + bytes(keys, from_at);
    std::byte* to_keys = to_bytes + to.key_tile(head) + bytes(keys, to_at);
    for (std::size_t d = 0; d < key_dim; ++d) {
      std::memcpy(to_keys + d * to_row, from_keys + d * from_row, live_keys);
    }
    if (value_dim == 0) continue;
    std::memcpy(
        to_bytes + to.value_tile(head) + bytes(values, to_at * value_dim),
        from_bytes + from.value_tile(head) + bytes(values, from_at * value_dim),
        live_values);
  }
}

void CopyBlockTokens(const KvSpec& spec, const KvLayout& from,
                     const std::byte* from_block, int from_at,
                     const KvLayout& to, std::byte* to_block, int to_at,
                     int n) {
  for (int i = 0; i < spec.n_layers(); ++i) {
    CopyLayerTokens(spec.layer(i), from.layer(i), from_block + from.offset(i),
                    from_at, to.layer(i), to_block + to.offset(i), to_at, n);
  }
}

void CopyBlockTokens(const KvSpec& spec, const KvLayout& from,
                     const std::byte* from_block, const KvLayout& to,
                     std::byte* to_block, int n) {
  CopyBlockTokens(spec, from, from_block, 0, to, to_block, 0, n);
}

}  // namespace hearth
