#include "cache/kv_layout.h"

#include "base/check.h"

namespace hearth {
namespace {

// 2: keys and values may differ in format, and rows may have scales.
constexpr std::uint32_t kLayoutVersion = 2;

std::size_t PadTo64(std::size_t n) { return (n + 63) / 64 * 64; }

bool KeepsFormats(const KvSpec& spec, int stride) {
  return !spec.quantised() || stride == spec.block_tokens;
}

}  // namespace

Digest FormatId(const KvSpec& spec) {
  return Sha256()
      .Field("hearth kv format")
      .Field(std::uint64_t{kLayoutVersion})
      .Field(static_cast<std::uint64_t>(spec.key_format))
      .Field(static_cast<std::uint64_t>(spec.value_format))
      .Field(static_cast<std::uint64_t>(spec.n_kv_layers))
      .Field(static_cast<std::uint64_t>(spec.n_kv_heads))
      .Field(static_cast<std::uint64_t>(spec.head_dim))
      .Field(static_cast<std::uint64_t>(spec.block_tokens))
      .Finish();
}

KvLayout::KvLayout(const KvSpec& spec, int stride)
    : KvLayout(
          spec, stride,
          KeepsFormats(spec, stride) ? spec.key_format : KvFormat::kF32,
          KeepsFormats(spec, stride) ? spec.value_format : KvFormat::kF32) {}

KvLayout KvLayout::Tail(const KvSpec& spec) {
  const bool quantised = spec.quantised();
  return KvLayout(spec, spec.block_tokens,
                  quantised ? KvFormat::kF32 : spec.key_format,
                  quantised ? KvFormat::kF32 : spec.value_format);
}

KvLayout::KvLayout(const KvSpec& spec, int stride, KvFormat key_format,
                   KvFormat value_format)
    : stride_(stride),
      key_format_(key_format),
      value_format_(value_format),
      n_kv_layers_(static_cast<std::size_t>(spec.n_kv_layers)) {
  HEARTH_CHECK(stride >= 1 && spec.n_kv_layers >= 1 && spec.n_kv_heads >= 1 &&
               spec.head_dim >= 1);
  const auto n_heads = static_cast<std::size_t>(spec.n_kv_heads);
  const std::int64_t dim = spec.head_dim;
  key_row_bytes_ =
      static_cast<std::size_t>(dim * KvRowBytes(key_format, stride));
  value_row_bytes_ =
      static_cast<std::size_t>(stride * KvRowBytes(value_format, dim));
  key_bytes_ =
      key_row_bytes_ + static_cast<std::size_t>(KvParamBytes(key_format, dim));
  value_bytes_ = value_row_bytes_ +
                 static_cast<std::size_t>(KvParamBytes(value_format, stride));
  keys_bytes_ = PadTo64(n_heads * key_bytes_);
  layer_bytes_ = keys_bytes_ + PadTo64(n_heads * value_bytes_);
}

KvTile KvLayout::TileAt(const std::byte* block, int layer, int head,
                        int n_tokens) const {
  KvTile tile;
  tile.keys = block + key_tile(layer, head);
  tile.values = block + value_tile(layer, head);
  tile.key_format = key_format_;
  tile.value_format = value_format_;
  tile.key_params = block + key_params(layer, head);
  tile.value_params = block + value_params(layer, head);
  tile.n_tokens = n_tokens;
  tile.stride = stride_;
  return tile;
}

}  // namespace hearth
