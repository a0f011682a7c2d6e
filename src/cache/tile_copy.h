// Copies tokens between blocks of different strides.
#pragma once

#include "cache/kv_layout.h"

namespace hearth {

// Copies n tokens of one layer, all heads, from `from_at` on to where `to_at`
// is. `from_bytes` and `to_bytes` are the layers' first bytes.
// REQUIRES: both are of `layer`'s shape and of the same formats, none
// quantised.
void CopyLayerTokens(const KvLayer& layer, const KvLayerLayout& from,
                     const std::byte* from_bytes, int from_at,
                     const KvLayerLayout& to, std::byte* to_bytes, int to_at,
                     int n);

// The same for every layer of a block.
void CopyBlockTokens(const KvSpec& spec, const KvLayout& from,
                     const std::byte* from_block, int from_at,
                     const KvLayout& to, std::byte* to_block, int to_at, int n);

// Tokens [0, n).
void CopyBlockTokens(const KvSpec& spec, const KvLayout& from,
                     const std::byte* from_block, const KvLayout& to,
                     std::byte* to_block, int n);

}  // namespace hearth
