#include "cache/kv_spec.h"

#include <algorithm>

namespace hearth {
namespace {

// 2: keys and values may differ in format, and rows may have scales. Layers
//    are all alike.
// 3: a list of layers, and of states.
constexpr std::uint64_t kUniformVersion = 2;
constexpr std::uint64_t kListVersion = 3;

}  // namespace

std::uint64_t KvLayer::full_bytes(int n) const {
  const std::int64_t keys =
      key_dim * KvRowBytes(key_format, n) + KvParamBytes(key_format, key_dim);
  const std::int64_t values = value_dim == 0
                                  ? 0
                                  : n * KvRowBytes(value_format, value_dim) +
                                        KvParamBytes(value_format, n);
  return static_cast<std::uint64_t>(n_heads) *
         static_cast<std::uint64_t>(keys + values);
}

KvSpec::KvSpec(const UniformKv& all)
    : layers(static_cast<std::size_t>(all.n_layers),
             KvLayer{.n_heads = all.n_heads,
                     .key_dim = all.head_dim,
                     .value_dim = all.head_dim,
                     .key_format = all.key_format,
                     .value_format = all.value_format}),
      block_tokens(all.block_tokens) {}

std::optional<UniformKv> KvSpec::uniform() const {
  if (layers.empty() || !states.empty()) return std::nullopt;
  const KvLayer& first = layers.front();
  if (first.key_dim != first.value_dim ||
      std::any_of(layers.begin(), layers.end(),
                  [&](const KvLayer& layer) { return layer != first; })) {
    return std::nullopt;
  }
  return UniformKv{.n_layers = n_layers(),
                   .n_heads = first.n_heads,
                   .head_dim = first.key_dim,
                   .key_format = first.key_format,
                   .value_format = first.value_format,
                   .block_tokens = block_tokens};
}

void KvSpec::SetFormats(KvFormat keys, KvFormat values) {
  for (KvLayer& layer : layers) {
    layer.key_format = keys;
    layer.value_format = values;
  }
}

bool KvSpec::quantised() const {
  return std::any_of(layers.begin(), layers.end(),
                     [](const KvLayer& layer) { return layer.quantised(); });
}

std::uint64_t KvSpec::full_block_bytes() const {
  std::uint64_t n = 0;
  for (const KvLayer& layer : layers) n += layer.full_bytes(block_tokens);
  return n;
}

std::uint64_t KvSpec::bytes_per_token() const {
  const auto n = static_cast<std::uint64_t>(block_tokens);
  return (full_block_bytes() + n - 1) / n;
}

std::uint64_t KvSpec::tail_bytes_per_token() const {
  if (!quantised()) return bytes_per_token();
  std::uint64_t n = 0;
  for (const KvLayer& layer : layers) n += layer.float_bytes();
  return n;
}

std::uint64_t KvSpec::BytesOf(int n_tokens) const {
  const int n_full = n_tokens / block_tokens;
  return static_cast<std::uint64_t>(n_full) * full_block_bytes() +
         static_cast<std::uint64_t>(n_tokens % block_tokens) *
             tail_bytes_per_token();
}

bool KvRetention::windowed() const {
  return std::any_of(windows.begin(), windows.end(),
                     [](int window) { return window > 0; });
}

Digest FormatId(const KvSpec& spec) {
  const auto number = [](auto value) {
    return static_cast<std::uint64_t>(value);
  };
  Sha256 sha;
  sha.Field("hearth kv format");
  // What could be stored before there was a list keeps its id, so that a store
  // of then is found.
  if (const auto all = spec.uniform(); all.has_value()) {
    return sha.Field(kUniformVersion)
        .Field(number(all->key_format))
        .Field(number(all->value_format))
        .Field(number(all->n_layers))
        .Field(number(all->n_heads))
        .Field(number(all->head_dim))
        .Field(number(all->block_tokens))
        .Finish();
  }
  sha.Field(kListVersion)
      .Field(number(spec.block_tokens))
      .Field(number(spec.layers.size()));
  for (const KvLayer& layer : spec.layers) {
    sha.Field(number(layer.key_format))
        .Field(number(layer.value_format))
        .Field(number(layer.n_heads))
        .Field(number(layer.key_dim))
        .Field(number(layer.value_dim));
  }
  sha.Field(number(spec.states.size()));
  for (const StateShape& state : spec.states) {
    sha.Field(number(state.rule)).Field(number(state.dims.size()));
    for (const int dim : state.dims) sha.Field(number(dim));
  }
  return sha.Finish();
}

}  // namespace hearth
