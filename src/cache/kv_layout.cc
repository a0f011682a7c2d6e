#include "cache/kv_layout.h"

#include "base/check.h"

namespace hearth {
namespace {

std::size_t PadTo64(std::size_t n) { return (n + 63) / 64 * 64; }

KvLayer AsFloats(KvLayer layer) {
  layer.key_format = layer.value_format = KvFormat::kF32;
  return layer;
}

}  // namespace

KvLayerLayout::KvLayerLayout(const KvLayer& layer, int stride)
    : stride_(stride),
      key_format_(layer.key_format),
      value_format_(layer.value_format) {
  HEARTH_CHECK(stride >= 1 && layer.n_heads >= 1 && layer.key_dim >= 1 &&
               layer.value_dim >= 0);
  const auto n_heads = static_cast<std::size_t>(layer.n_heads);
  key_row_bytes_ =
      static_cast<std::size_t>(layer.key_dim * KvRowBytes(key_format_, stride));
  key_bytes_ = key_row_bytes_ + static_cast<std::size_t>(
                                    KvParamBytes(key_format_, layer.key_dim));
  keys_bytes_ = PadTo64(n_heads * key_bytes_);
  value_row_bytes_ = static_cast<std::size_t>(
      stride * KvRowBytes(value_format_, layer.value_dim));
  value_bytes_ = 0;
  if (layer.value_dim > 0) {
    value_bytes_ = value_row_bytes_ + static_cast<std::size_t>(
                                          KvParamBytes(value_format_, stride));
  }
  bytes_ = keys_bytes_ + PadTo64(n_heads * value_bytes_);
}

KvTile KvLayerLayout::TileAt(const std::byte* layer, int head,
                             int n_tokens) const {
  KvTile tile;
  tile.keys = layer + key_tile(head);
  tile.key_format = key_format_;
  tile.key_params = layer + key_params(head);
  if (value_bytes_ > 0) {
    tile.values = layer + value_tile(head);
    tile.value_params = layer + value_params(head);
  }
  tile.value_format = value_format_;
  tile.n_tokens = n_tokens;
  tile.stride = stride_;
  return tile;
}

KvLayout::KvLayout(const KvSpec& spec, int stride)
    : KvLayout(spec, stride,
               /*as_floats=*/spec.quantised() && stride != spec.block_tokens) {}

KvLayout KvLayout::Tail(const KvSpec& spec) {
  return KvLayout(spec, spec.block_tokens, /*as_floats=*/spec.quantised());
}

KvLayout::KvLayout(const KvSpec& spec, int stride, bool as_floats)
    : stride_(stride) {
  HEARTH_CHECK(!spec.layers.empty());
  layers_.reserve(spec.layers.size());
  for (const KvLayer& layer : spec.layers) {
    const KvLayerLayout layout(as_floats ? AsFloats(layer) : layer, stride);
    layers_.push_back({layout, block_bytes_});
    block_bytes_ += layout.bytes();
  }
}

KvPlaceInBlock KvLayout::PlaceOf(int layer) const {
  const KvLayerLayout& at = this->layer(layer);
  return {.key_format = at.key_format(),
          .value_format = at.value_format(),
          .layer = offset(layer),
          .keys = at.key_tile(0),
          .key_step = at.key_tile(1) - at.key_tile(0),
          .values = at.value_tile(0),
          .value_step = at.value_tile(1) - at.value_tile(0),
          .key_params = at.key_params(0) - at.key_tile(0),
          .value_params = at.value_params(0) - at.value_tile(0)};
}

std::vector<KvPart> KvLayout::Parts() const {
  std::vector<KvPart> parts;
  for (int i = 0; i < n_layers(); ++i) {
    const std::size_t keys = layer(i).keys_bytes();
    const std::size_t values = layer(i).bytes() - keys;
    parts.push_back({KvPart::Kind::kKeys, i, offset(i), keys});
    if (values > 0) {
      parts.push_back({KvPart::Kind::kValues, i, offset(i) + keys, values});
    }
  }
  return parts;
}

}  // namespace hearth
