// The order in which a store is emptied, from facts in memory. eviction.h says
// what the order is and reads the facts; a simulation may invent them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "store/format/prompt_file.h"

namespace hearth {

struct EvictionPolicy {
  double half_life_s = 24 * 3600;
};

// A file is named by a number of the caller's; of files that are worth the same
// the lower number goes first.
class EvictionPlan {
 public:
  // A file, when it was last used, and whether it must stay.
  struct Fact {
    std::size_t file = 0;
    std::int64_t last_use_ns = 0;
    bool is_kept = false;
  };

  // Blocks and states first, then the prompts that hold them.
  void AddBlock(const Digest& id, const Fact& fact) { blocks_[id] = {fact}; }
  void AddState(const Digest& id, const Fact& fact) { states_[id] = {fact}; }
  // `header` null: a manifest that cannot be read. `pinned`: its blocks and
  // states stay, too.
  void AddPrompt(const PromptHeader* header, const Fact& fact, bool pinned);
  void AddLeftover(const Fact& fact) { leftovers_.push_back(fact); }
  void AddMemo(const Fact& fact) { memos_.push_back(fact); }

  // After the last prompt. `was_used`: whether a block's file was used again
  // after it was written; asked of tails alone.
  void PlaceTails(const std::function<bool(std::size_t file)>& was_used);
  // Then what no prompt holds: `parent_of` gives the image in front of a
  // file's, or nothing when that cannot be told.
  using ParentOf = std::function<std::optional<Digest>(std::size_t file)>;
  void PlaceLoose(const ParentOf& block_parent, const ParentOf& state_parent);

  // Files in the order of deletion; none that is kept.
  std::vector<std::size_t> Order(const EvictionPolicy& policy,
                                 std::int64_t now_ns) const;

 private:
  struct Candidate {
    Fact fact;
    int n_sharing = 0;
    std::size_t depth = 0;
    bool is_one_shot = false;  // a tail that goes with its manifest
    bool is_reached = false;   // of a model with states: some at or behind it
  };
  // The partial block that a prompt ends with, and the states inside.
  struct Tail {
    std::size_t manifest = 0;
    Digest id;
    std::vector<Digest> states;
  };

  void PlaceBlocks(const PromptHeader& header, std::int64_t last_use_ns,
                   bool pinned);
  void PlaceStates(const PromptHeader& header, bool pinned);
  void PlaceTail(const Tail& tail,
                 const std::function<bool(std::size_t)>& was_used);
  void RaiseAncestors(const Digest& id,
                      const std::map<Digest, Digest>& parents);

  std::unordered_map<Digest, Candidate> blocks_, states_;
  std::vector<Candidate> manifests_;
  std::vector<Tail> tails_;  // of these manifests
  std::vector<Fact> leftovers_, memos_;
};

}  // namespace hearth
