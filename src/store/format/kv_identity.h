// The chain of block ids: what makes stored keys and values the right ones.
//
//   root     = SHA-256(model_id, format_id, name_space)
//   block_id = SHA-256(parent id, token ids of this block)
// so that a block's id fixes the weights, the storage format and every token
// from the start of the sequence to the block's last one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/hash.h"

namespace hearth {

struct KvIdentity {
  Digest model_id;
  Digest format_id;
  std::string name_space;  // entries of one name space are invisible to others
  std::string model_name;  // for file names only; made from content
};

Digest RootId(const KvIdentity& identity);
Digest ChildId(const Digest& parent, std::span<const std::int32_t> tokens);

// Ids of all full blocks of `tokens`, then of the partial last one if any.
std::vector<Digest> ChainIds(const KvIdentity& identity,
                             std::span<const std::int32_t> tokens,
                             int block_tokens);

}  // namespace hearth
