// Which tokens a grammar takes next, as a bit for each id.
//
// What a state takes until its call ends is the same wherever the call stands
// (inside a string, say, most of a vocabulary), so it is found once, with the
// places in the trie where the call ends inside a token. Only from these places
// on does the context matter, and few tokens lie there. A whole mask is kept
// for its node, so that it costs a lookup the next time.
//
// Threads  none; see Grammar.
#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "grammar/automaton/configurations.h"
#include "grammar/automaton/token_trie.h"

namespace hearth::grammar {

// Ids as a list when they are few, as bits otherwise.
class TokenSet {
 public:
  TokenSet() = default;
  explicit TokenSet(std::span<const std::uint64_t> bits);
  void AddTo(std::span<std::uint64_t> bits) const;
  std::size_t bytes() const { return 4 * few_.size() + 8 * many_.size(); }

 private:
  std::vector<std::int32_t> few_;
  std::vector<std::uint64_t> many_;
};

class TokenMasks {
 public:
  // All outlive the object.
  TokenMasks(Automaton& automaton, Configurations& configurations,
             const TokenTrie& trie)
      : automaton_(automaton), configurations_(configurations), trie_(trie) {}

  // Sets the bits of the tokens that `node` takes; leaves the others. `bits`
  // has (n_vocab + 63) / 64 words.
  void AddMask(NodeId node, std::span<std::uint64_t> bits);

 private:
  // What is kept may take this much; then it is made anew.
  static constexpr std::size_t kKeptBytesMax = std::size_t{64} << 20;

  struct Local {
    TokenSet tokens;
    std::vector<std::int32_t> ends;  // trie nodes where the call ends, not last
  };

  const Local& LocalOf(StateId state);
  StateId TwinOf(StateId state) const;
  // Tries what lies in trie nodes [begin, end) below one of depth `depth` where
  // the text stands at `node`.
  void Walk(std::int32_t begin, std::int32_t end, int depth, NodeId node,
            std::span<std::uint64_t> bits, std::vector<std::int32_t>* ends);

  Automaton& automaton_;
  Configurations& configurations_;
  const TokenTrie& trie_;
  std::unordered_map<StateId, Local> locals_;
  std::unordered_map<NodeId, TokenSet> masks_;
  std::uint64_t masks_generation_ = 0;
  std::size_t local_bytes_ = 0, mask_bytes_ = 0;
  std::vector<NodeId> path_;
};

}  // namespace hearth::grammar
