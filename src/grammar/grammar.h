// A language that a text must be in: made from a GBNF grammar (gbnf.h) or a
// JSON Schema (json_schema.h), asked by a Matcher and by a sampler's constraint
// (token_constraint.h).
//
// Threads  a Grammar may be shared: matchers on several threads take turns.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "grammar/automaton/automaton.h"
#include "grammar/automaton/configurations.h"
#include "grammar/automaton/token_masks.h"
#include "hearth/result.h"

namespace hearth::grammar {

class Grammar {
 public:
  // kResourceFull when the machine grew beyond Automaton::kStatesMax.
  static Result<std::shared_ptr<Grammar>> Make(
      std::unique_ptr<Automaton> automaton, StateId start);

 private:
  friend class Matcher;
  Grammar(std::unique_ptr<Automaton> automaton, StateId start)
      : automaton_(std::move(automaton)),
        configurations_(*automaton_),
        start_(start) {}

  std::mutex mutex_;  // of all below
  std::unique_ptr<Automaton> automaton_;
  Configurations configurations_;
  StateId start_;
  std::unordered_map<std::shared_ptr<const TokenTrie>,
                     std::unique_ptr<TokenMasks>>
      masks_;
};

// How far a text is in a grammar.
class Matcher {
 public:
  explicit Matcher(std::shared_ptr<Grammar> grammar);

  // Takes the bytes, or nothing of them: false when the grammar does not allow
  // them here. Each success is one step for Mark and Return.
  bool Accept(std::string_view bytes);
  // Whether the text may end here.
  bool CanEnd();
  // Whether it can only end here.
  bool MustEnd();
  // Sets the bit of each token that may come next.
  void AddMask(const std::shared_ptr<const TokenTrie>& trie,
               std::span<std::uint64_t> bits);

  // Steps taken so far, and back to where so many had been. REQUIRES: 0 <= mark
  // <= Mark().
  int Mark() const { return static_cast<int>(history_.size()) - 1; }
  void Return(int mark);

 private:
  // The node of the newest set; the grammar's mutex is held.
  NodeId Node();

  std::shared_ptr<Grammar> grammar_;
  std::vector<ConfigurationSet> history_;  // never empty
  NodeId node_ = kDead;                    // of the newest, in `generation_`
  std::uint64_t generation_ = 0;
  bool node_known_ = false;
};

}  // namespace hearth::grammar
