// Copies tokens between blocks of different strides.
#pragma once

#include "cache/kv_layout.h"

namespace hearth {

// Copies tokens [0, n) of one KV layer, all heads. `from_layer` and `to_layer`
// are the layers' first bytes; the layouts give their strides.
// REQUIRES: both have the same formats, none quantised.
void CopyLayerTokens(const KvSpec& spec, const KvLayout& from,
                     const std::byte* from_layer, const KvLayout& to,
                     std::byte* to_layer, int n);

// The same for every layer of a block.
void CopyBlockTokens(const KvSpec& spec, const KvLayout& from,
                     const std::byte* from_block, const KvLayout& to,
                     std::byte* to_block, int n);

// Copies n tokens from `from_at` on to where `to_at` is, in every layer.
void CopyBlockTokens(const KvSpec& spec, const KvLayout& from,
                     const std::byte* from_block, int from_at,
                     const KvLayout& to, std::byte* to_block, int to_at, int n);

}  // namespace hearth
