// An engine's vocabulary as a trie, made when the first constraint asks: for a
// large one that takes tenths of a second, which most engines never need.
#pragma once

#include <memory>

#include "base/mutex.h"
#include "grammar/automaton/token_trie.h"
#include "text/tokenizer.h"

namespace hearth {

class LazyTokenTrie {
 public:
  // Always of the same tokenizer. Any thread; the first one makes it, others
  // wait.
  std::shared_ptr<const grammar::TokenTrie> Of(const Tokenizer& tokenizer) {
    const MutexLock lock(mutex_);
    if (trie_ == nullptr) {
      trie_ = std::make_shared<const grammar::TokenTrie>(tokenizer);
    }
    return trie_;
  }

 private:
  Mutex mutex_;
  std::shared_ptr<const grammar::TokenTrie> trie_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth
