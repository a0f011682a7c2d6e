// What to delete when room is needed.
//
//   1  leftovers: stale temporary files, quarantine, notes without a manifest
//   2  one-shot tails, with their manifests: never used since they were
//      written, and shared by no other prompt; and of a model that carries
//      states the blocks that no stored ones are at or behind
//   3  everything else by worth, the least worthy first
//
//   worth = log2(number of stored prompts that share it) - age / half-life
//
// so that one prompt more counts as much as one half-life of rest. A block is
// worth at least what stands behind it in its chain, and of equals the deepest
// goes first: a chain loses its end, never its beginning, and no block is left
// that cannot be reached. States go by their own last use, but the last ones of
// a chain no sooner than the block that they are behind.
//
// Never deleted: what is pinned, what the caller protects, VERSION, and files
// that are not the store's.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "store/budget/eviction_plan.h"
#include "store/directory/catalog.h"

namespace hearth {

// What an operation in progress needs.
struct Protection {
  std::unordered_set<Digest> blocks;
  std::unordered_set<Digest> states;
  std::unordered_set<std::string> stems;  // of manifests
};

// In the order of deletion; positions in catalog.files. Reads manifests (and
// the headers of blocks that none of them mentions) below `root`.
std::vector<std::size_t> EvictionOrder(const Directory& root,
                                       const Catalog& catalog,
                                       const Protection& protection,
                                       const EvictionPolicy& policy,
                                       std::int64_t now_ns);

struct EvictionResult {
  std::uint64_t n_files = 0;
  std::uint64_t bytes = 0;
};

// Deletes in the given order until `bytes` are gone (or all are).
EvictionResult Evict(const Directory& root, const Catalog& catalog,
                     const std::vector<std::size_t>& order,
                     std::uint64_t bytes);

}  // namespace hearth
