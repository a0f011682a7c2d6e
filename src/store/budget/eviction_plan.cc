#include "store/budget/eviction_plan.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace hearth {

void EvictionPlan::AddPrompt(const PromptHeader* header, const Fact& fact,
                             bool pinned) {
  if (header == nullptr) {
    manifests_.push_back({.fact = fact});
    return;
  }
  PlaceBlocks(*header, fact.last_use_ns, pinned);
  if (header->carries_states) PlaceStates(*header, pinned);
  if (pinned || fact.is_kept) return;
  const std::size_t depth = header->entries.size() + 1;
  manifests_.push_back({.fact = fact, .n_sharing = 1, .depth = depth});
  const PromptEntry& last = header->entries.back();
  if (last.end % static_cast<std::uint64_t>(header->block_tokens) == 0) return;
  Tail tail{manifests_.size() - 1, last.id, {}};
  const std::uint64_t begin = header->BlockStart(depth - 2);
  for (const PromptEntry& state : header->states) {
    if (state.end > begin) tail.states.push_back(state.id);
  }
  tails_.push_back(std::move(tail));
}

// A block was used no earlier than what stands behind it.
void EvictionPlan::PlaceBlocks(const PromptHeader& header,
                               std::int64_t last_use_ns, bool pinned) {
  for (std::size_t n = header.entries.size(); n > 0; --n) {
    const auto found = blocks_.find(header.entries[n - 1].id);
    if (found == blocks_.end()) continue;
    Candidate& block = found->second;
    last_use_ns = std::max(last_use_ns, block.fact.last_use_ns);
    block.fact.last_use_ns = last_use_ns;
    block.depth = n;
    ++block.n_sharing;
    block.fact.is_kept = block.fact.is_kept || pinned;
  }
}

// A state is as deep as the block that it is behind; the last one of a prompt
// is worth what its block is, so that it goes no sooner. What stands behind it
// nobody can begin from: it is the first to go.
void EvictionPlan::PlaceStates(const PromptHeader& header, bool pinned) {
  std::uint64_t last = 0;
  for (std::size_t i = header.states.size(); i-- > 0;) {
    const PromptEntry& entry = header.states[i];
    const auto found = states_.find(entry.id);
    if (found == states_.end()) continue;
    Candidate& state = found->second;
    ++state.n_sharing;
    state.fact.is_kept = state.fact.is_kept || pinned;
    std::size_t n = 0;
    while (n < header.entries.size() && header.entries[n].end < entry.end) ++n;
    state.depth = std::max(state.depth, n + 1);
    if (last > 0) continue;
    last = entry.end;
    const auto block = blocks_.find(header.entries[n].id);
    if (block == blocks_.end()) continue;
    state.fact.last_use_ns =
        std::max(state.fact.last_use_ns, block->second.fact.last_use_ns);
  }
  for (std::size_t i = 0; i < header.entries.size(); ++i) {
    const auto found = blocks_.find(header.entries[i].id);
    if (found == blocks_.end()) continue;
    Candidate& block = found->second;
    const bool reached = header.FirstOf(i) < last;
    block.is_reached = block.is_reached || reached;
    block.is_one_shot = !block.is_reached && !block.fact.is_kept;
  }
}

void EvictionPlan::PlaceTails(
    const std::function<bool(std::size_t file)>& was_used) {
  for (const Tail& tail : tails_) PlaceTail(tail, was_used);
}

// A tail that one prompt alone has and that was not used since it was written.
void EvictionPlan::PlaceTail(const Tail& of,
                             const std::function<bool(std::size_t)>& was_used) {
  Candidate& manifest = manifests_[of.manifest];
  const auto found = blocks_.find(of.id);
  if (found == blocks_.end()) return;
  Candidate& tail = found->second;
  manifest.fact.last_use_ns =
      std::max(manifest.fact.last_use_ns, tail.fact.last_use_ns);
  if (tail.n_sharing > 1 || tail.fact.is_kept || was_used(tail.fact.file)) {
    return;
  }
  manifest.is_one_shot = tail.is_one_shot = true;
  tail.fact.last_use_ns = manifest.fact.last_use_ns;
  tail.depth = manifest.depth - 1;  // after it
  for (const Digest& id : of.states) {
    const auto state = states_.find(id);
    if (state == states_.end()) continue;
    Candidate& one = state->second;
    one.is_one_shot = one.n_sharing == 1 && !one.fact.is_kept;
  }
}

void EvictionPlan::PlaceLoose(const ParentOf& block_parent,
                              const ParentOf& state_parent) {
  std::map<Digest, Digest> parents;
  for (const auto& [id, block] : blocks_) {
    if (block.n_sharing > 0) continue;
    const auto parent = block_parent(block.fact.file);
    if (parent.has_value()) parents[id] = *parent;
  }
  for (const auto& [id, parent] : parents) RaiseAncestors(id, parents);
  for (auto& [id, state] : states_) {
    if (state.n_sharing > 0) continue;
    const auto parent = state_parent(state.fact.file);
    if (!parent.has_value()) continue;
    const auto before = blocks_.find(*parent);
    state.depth = 1 + (before == blocks_.end() ? 0 : before->second.depth);
  }
}

// Everything before a loose block is worth at least as much as it.
void EvictionPlan::RaiseAncestors(const Digest& id,
                                  const std::map<Digest, Digest>& parents) {
  Candidate& block = blocks_.at(id);
  auto parent = parents.find(id);
  // The bound guards against a ring, which a forged header could make.
  for (std::size_t steps = 1; steps <= blocks_.size(); ++steps) {
    if (parent == parents.end()) return;
    const auto above = blocks_.find(parent->second);
    if (above == blocks_.end()) return;
    above->second.fact.last_use_ns =
        std::max(above->second.fact.last_use_ns, block.fact.last_use_ns);
    // Only the last step, to a block that a manifest placed, adds more.
    block.depth =
        steps + (above->second.n_sharing > 0 ? above->second.depth : 0);
    parent = parents.find(above->first);
  }
}

std::vector<std::size_t> EvictionPlan::Order(const EvictionPolicy& policy,
                                             std::int64_t now_ns) const {
  // Class, worth, depth from below, file.
  std::vector<std::tuple<int, double, std::size_t, std::size_t>> keys;
  const auto add = [&](int rank, const Fact& fact, int n_sharing,
                       std::size_t depth) {
    if (fact.is_kept) return;
    const double age_s = static_cast<double>(now_ns - fact.last_use_ns) * 1e-9;
    const double worth =
        std::log2(std::max(1, n_sharing)) - age_s / policy.half_life_s;
    keys.emplace_back(rank, worth, ~depth, fact.file);
  };
  for (const Fact& fact : leftovers_) add(0, fact, 1, 0);
  for (const Fact& fact : memos_) add(2, fact, 1, 0);
  for (const Candidate& manifest : manifests_) {
    add(manifest.is_one_shot ? 1 : 2, manifest.fact, 1, manifest.depth);
  }
  for (const auto* kind : {&blocks_, &states_}) {
    for (const auto& [id, one] : *kind) {
      add(one.is_one_shot ? 1 : 2, one.fact, one.n_sharing, one.depth);
    }
  }
  std::sort(keys.begin(), keys.end());
  std::vector<std::size_t> order;
  order.reserve(keys.size());
  for (const auto& key : keys) order.push_back(std::get<3>(key));
  return order;
}

}  // namespace hearth
