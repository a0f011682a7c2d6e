// The identity of a tokenizer: SHA-256 over everything that decides which ids a
// text gets, in a fixed order, independent of hash tables and their seeds.
#pragma once

#include "base/hash.h"

namespace hearth {

struct TokenizerSpec;

Digest FingerprintOf(const TokenizerSpec& spec);

}  // namespace hearth
