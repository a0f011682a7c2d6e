// A pool whose sequences hold tagged tokens, for tests of many sequences.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "testing/own_sequence.h"
#include "testing/tagged_tokens.h"

namespace hearth::pooled {

inline constexpr int kBlock = 16;

inline KvSpec Spec() {
  return UniformKv{
      .n_layers = 3, .n_heads = 2, .head_dim = 5, .block_tokens = kBlock};
}

// Ids of the full blocks, as a chain gives them.
inline std::vector<Digest> Ids(const std::vector<int>& tags) {
  std::vector<Digest> ids;
  Digest parent;
  for (std::size_t at = 0; at + kBlock <= tags.size(); at += kBlock) {
    parent = Sha256()
                 .Field(parent)
                 .Field(std::as_bytes(std::span(tags).subspan(at, kBlock)))
                 .Finish();
    ids.push_back(parent);
  }
  return ids;
}

struct Pool {
  explicit Pool(const KvSpec& of, const KvRetention& keeps = {},
                std::uint64_t bytes_max = 0)
      : spec(of),
        retention(keeps),
        blocks(
            *MakeKvPool(of, keeps, {.n_blocks = 8, .bytes_max = bytes_max})) {}
  std::unique_ptr<KvSequence> NewSequence() const {
    return MakeInPlaceSequence(blocks, spec, retention);
  }
  std::uint64_t held() const { return blocks->Usage().held_bytes; }
  void ExpectSound() const {
    const auto sound = blocks->CheckIntegrity();
    ASSERT_TRUE(sound.ok()) << sound.error().message;
  }
  KvSpec spec;
  KvRetention retention;
  std::shared_ptr<BlockPool> blocks;
};

// A copy of a full block, as a store would map it.
inline std::shared_ptr<std::vector<std::byte>> Stored(const KvSequence& seq,
                                                      int block) {
  const BlockImage image = *seq.Image(block, kBlock);
  return std::make_shared<std::vector<std::byte>>(image.payload.begin(),
                                                  image.payload.end());
}

}  // namespace hearth::pooled
