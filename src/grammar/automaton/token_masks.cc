#include "grammar/automaton/token_masks.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hearth::grammar {
namespace {

void SetBit(std::span<std::uint64_t> bits, std::int32_t id) {
  const auto at = static_cast<std::size_t>(id);
  bits[at / 64] |= std::uint64_t{1} << (at % 64);
}

}  // namespace

TokenSet::TokenSet(std::span<const std::uint64_t> bits) {
  std::size_t n = 0;
  for (const std::uint64_t word : bits) {
    n += static_cast<std::size_t>(std::popcount(word));
  }
  if (n >= 2 * bits.size()) {
    many_.assign(bits.begin(), bits.end());
    return;
  }
  few_.reserve(n);
  for (std::size_t i = 0; i < bits.size(); ++i) {
    for (std::uint64_t word = bits[i]; word != 0; word &= word - 1) {
      few_.push_back(static_cast<std::int32_t>(i * 64) +
                     std::countr_zero(word));
    }
  }
}

void TokenSet::AddTo(std::span<std::uint64_t> bits) const {
  for (std::size_t i = 0; i < many_.size(); ++i) bits[i] |= many_[i];
  for (const std::int32_t id : few_) SetBit(bits, id);
}

void TokenMasks::Walk(std::int32_t begin, std::int32_t end, int depth,
                      NodeId node, std::span<std::uint64_t> bits,
                      std::vector<std::int32_t>* ends) {
  const std::span<const TokenTrie::Node> nodes = trie_.nodes();
  path_.resize(static_cast<std::size_t>(trie_.longest_token()) + 1);
  path_[static_cast<std::size_t>(depth)] = node;
  for (std::int32_t i = begin; i < end;) {
    const TokenTrie::Node& here = nodes[static_cast<std::size_t>(i)];
    const NodeId next =
        configurations_.Step(path_[here.depth - std::size_t{1}], here.byte);
    if (next == kDead) {
      i += here.size;
      continue;
    }
    for (const std::int32_t id : trie_.TokensAt(here)) SetBit(bits, id);
    if (ends != nullptr && here.size > 1 && configurations_.Ends(next)) {
      ends->push_back(i);
    }
    path_[here.depth] = next;
    ++i;
  }
}

StateId TokenMasks::TwinOf(StateId id) const {
  const State& state = automaton_.at(id);
  return state.twin >= 0 && state.twin_bytes >= trie_.longest_token()
             ? state.twin
             : id;
}

const TokenMasks::Local& TokenMasks::LocalOf(StateId state) {
  const auto it = locals_.find(state);
  if (it != locals_.end()) return it->second;
  if (local_bytes_ > kKeptBytesMax) {
    locals_.clear();
    local_bytes_ = 0;
  }
  std::vector<std::uint64_t> bits(
      (static_cast<std::size_t>(trie_.n_vocab()) + 63) / 64);
  Local local;
  const NodeId node = configurations_.Local(state);
  if (node != kDead) {
    Walk(0, static_cast<std::int32_t>(trie_.nodes().size()), 0, node, bits,
         &local.ends);
  }
  local.tokens = TokenSet(bits);
  local_bytes_ += local.tokens.bytes() + 4 * local.ends.size();
  return locals_.emplace(state, std::move(local)).first->second;
}

void TokenMasks::AddMask(NodeId node, std::span<std::uint64_t> bits) {
  if (masks_generation_ != configurations_.generation() ||
      mask_bytes_ > kKeptBytesMax) {
    masks_.clear();
    mask_bytes_ = 0;
    masks_generation_ = configurations_.generation();
  }
  const auto known = masks_.find(node);
  if (known != masks_.end()) return known->second.AddTo(bits);

  std::vector<std::uint64_t> own(bits.size());
  // A call that may end here and now is followed by what stands behind it.
  ConfigurationSet open = configurations_.Kernel(node);
  ConfigurationSet seen;
  while (!open.empty()) {
    const Configuration c = open.back();
    open.pop_back();
    if (std::find(seen.begin(), seen.end(), c) != seen.end()) continue;
    seen.push_back(c);
    const StateId state = TwinOf(c.state);
    const Local& local = LocalOf(state);
    local.tokens.AddTo(own);
    if (c.stack == 0) continue;
    const Configuration below = configurations_.Below(c.stack);
    const NodeId local_node = configurations_.Local(state);
    if (local_node != kDead && configurations_.Ends(local_node)) {
      open.push_back(below);
    }
    if (local.ends.empty()) continue;
    const NodeId behind = configurations_.Intern({below});
    if (behind == kDead) continue;
    for (const std::int32_t i : local.ends) {
      const TokenTrie::Node& at = trie_.nodes()[static_cast<std::size_t>(i)];
      Walk(i + 1, i + at.size, at.depth, behind, own, nullptr);
    }
  }
  TokenSet set(own);
  mask_bytes_ += set.bytes();
  set.AddTo(bits);
  masks_.emplace(node, std::move(set));
}

}  // namespace hearth::grammar
