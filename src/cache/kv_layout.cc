#include "cache/kv_layout.h"

#include "base/check.h"

namespace hearth {
namespace {

constexpr std::uint32_t kLayoutVersion = 1;

std::size_t PadTo64(std::size_t n) { return (n + 63) / 64 * 64; }

}  // namespace

Digest FormatId(const KvSpec& spec) {
  return Sha256()
      .Field("hearth kv format")
      .Field(std::uint64_t{kLayoutVersion})
      .Field(static_cast<std::uint64_t>(spec.format))
      .Field(static_cast<std::uint64_t>(spec.n_kv_layers))
      .Field(static_cast<std::uint64_t>(spec.n_kv_heads))
      .Field(static_cast<std::uint64_t>(spec.head_dim))
      .Field(static_cast<std::uint64_t>(spec.block_tokens))
      .Finish();
}

KvLayout::KvLayout(const KvSpec& spec, int stride)
    : stride_(stride),
      n_kv_layers_(static_cast<std::size_t>(spec.n_kv_layers)) {
  HEARTH_CHECK(stride >= 1 && spec.n_kv_layers >= 1 && spec.n_kv_heads >= 1 &&
               spec.head_dim >= 1);
  tile_bytes_ = static_cast<std::size_t>(spec.head_dim) *
                static_cast<std::size_t>(stride) *
                static_cast<std::size_t>(BytesPerValue(spec.format));
  keys_bytes_ = PadTo64(static_cast<std::size_t>(spec.n_kv_heads) * tile_bytes_);
  layer_bytes_ = 2 * keys_bytes_;
}

}  // namespace hearth
