#include "cache/tile_copy.h"

#include <cstring>

#include "base/check.h"

namespace hearth {

namespace {

void CopyTokens(const KvSpec& spec, const KvLayout& from,
                const std::byte* from_layer, int from_at, const KvLayout& to,
                std::byte* to_layer, int to_at, int n) {
  HEARTH_CHECK(from_at >= 0 && to_at >= 0 && from_at + n <= from.stride() &&
               to_at + n <= to.stride() &&
               from.key_format() == to.key_format() &&
               from.value_format() == to.value_format());
  const auto bytes = [](KvFormat format, std::int64_t count) {
    return static_cast<std::size_t>(KvRowBytes(format, count));
  };
  const KvFormat keys = from.key_format(), values = from.value_format();
  const std::size_t live_keys = bytes(keys, n);
  const std::size_t live_values =
      bytes(values, std::int64_t{n} * spec.head_dim);
  const std::size_t from_row = bytes(keys, from.stride());
  const std::size_t to_row = bytes(keys, to.stride());
  const auto head_dim = static_cast<std::size_t>(spec.head_dim);
  for (int head = 0; head < spec.n_kv_heads; ++head) {
    const std::byte* from_keys =
        from_layer + from.key_tile(0, head) + bytes(keys, from_at);
    std::byte* to_keys = to_layer + to.key_tile(0, head) + bytes(keys, to_at);
    for (std::size_t d = 0; d < head_dim; ++d) {
      std::memcpy(to_keys + d * to_row, from_keys + d * from_row, live_keys);
    }
    std::memcpy(to_layer + to.value_tile(0, head) +
                    bytes(values, std::int64_t{to_at} * spec.head_dim),
                from_layer + from.value_tile(0, head) +
                    bytes(values, std::int64_t{from_at} * spec.head_dim),
                live_values);
  }
}

}  // namespace

void CopyLayerTokens(const KvSpec& spec, const KvLayout& from,
                     const std::byte* from_layer, const KvLayout& to,
                     std::byte* to_layer, int n) {
  CopyTokens(spec, from, from_layer, 0, to, to_layer, 0, n);
}

void CopyBlockTokens(const KvSpec& spec, const KvLayout& from,
                     const std::byte* from_block, const KvLayout& to,
                     std::byte* to_block, int n) {
  CopyBlockTokens(spec, from, from_block, 0, to, to_block, 0, n);
}

void CopyBlockTokens(const KvSpec& spec, const KvLayout& from,
                     const std::byte* from_block, int from_at,
                     const KvLayout& to, std::byte* to_block, int to_at,
                     int n) {
  for (int layer = 0; layer < spec.n_kv_layers; ++layer) {
    CopyTokens(spec, from, from_block + from.layer_offset(layer), from_at, to,
               to_block + to.layer_offset(layer), to_at, n);
  }
}

}  // namespace hearth
