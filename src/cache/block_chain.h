// The chain of block ids: what makes stored keys and values the right ones.
//
//   root     = SHA-256(model_id, format_id, name_space)
//   block_id = SHA-256(parent id, token ids of this block)
// so that a block's id fixes the weights, the storage format and every token
// from the start of the sequence to the block's last one.
#pragma once

#include <cstddef>
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

// Appends the ids of the full blocks of `tokens` that `ids` lacks. REQUIRES:
// `ids` are those of the first full blocks; step > 0.
void AddFullBlockIds(const Digest& root, std::span<const std::int32_t> tokens,
                     std::size_t step, std::vector<Digest>& ids);

// One block of a chain. `tokens` points into the chain.
struct BlockRef {
  Digest parent, id;  // `parent`: the root's id for the first block
  std::span<const std::int32_t> tokens;
};

// The blocks of one sequence of tokens: all full ones, then the partial last
// one if any. Each id is computed once.
class BlockChain {
 public:
  // REQUIRES: block_tokens > 0.
  BlockChain(KvIdentity identity, std::span<const std::int32_t> tokens,
             int block_tokens);

  void Append(std::span<const std::int32_t> tokens);
  // Keeps the first `n_tokens`. REQUIRES: there are as many.
  void Truncate(std::size_t n_tokens);
  BlockChain First(std::size_t n_tokens) const {
    BlockChain first = *this;
    first.Truncate(n_tokens);
    return first;
  }

  const KvIdentity& identity() const { return identity_; }
  const Digest& root_id() const { return root_id_; }
  std::size_t block_tokens() const { return step_; }
  std::span<const std::int32_t> tokens() const { return tokens_; }

  std::size_t size() const { return ids_.size(); }  // of blocks
  std::size_t n_full() const { return tokens_.size() / step_; }
  BlockRef operator[](std::size_t index) const;
  // The first token of block `index`; for index = size() the end.
  std::size_t BeginOf(std::size_t index) const;
  // REQUIRES: size() > 0.
  const Digest& end_id() const { return ids_.back(); }
  // What block `index` stands behind.
  const Digest& ParentOf(std::size_t index) const {
    return index == 0 ? root_id_ : ids_[index - 1];
  }

 private:
  void AddIds();

  KvIdentity identity_;
  Digest root_id_;
  std::size_t step_;
  std::vector<std::int32_t> tokens_;
  std::vector<Digest> ids_;
};

}  // namespace hearth
