// Which of a session's kept states go to the prompt cache. One costs as much as
// the keys and values of thousands of tokens, so not every one does: what a
// kill may cost is kGapTokens to be computed again. docs/decisions/0137-*.md.
#pragma once

#include <set>
#include <span>
#include <vector>

#include "cache/states/state_slab.h"

namespace hearth {

// What a save hands over of states.
struct StatesToSave {
  std::vector<StateCheckpointPtr> states;  // rising
  std::vector<int> dropped;  // positions whose files others do for now
};

class StateSaves {
 public:
  // So far from the one before a state is worth its file while a prompt or an
  // answer grows.
  static constexpr int kGapTokens = 1024;
  // The first one's least position.
  static constexpr int kFirstTokens = 256;
  // Of those that a session wrote; of more, every second of the older ones
  // goes.
  static constexpr std::size_t kWrittenMax = 8;

  // States at multiples of `grid` are never dropped.
  explicit StateSaves(int grid = 8192) : grid_(grid) {}

  void NoteStored(int n_tokens) { stored_.insert(n_tokens); }
  void NoteRewound(int n_tokens);
  // It is not known any more what the store has.
  void Forget();

  enum class When {
    kGrowing,  // more comes
    kPrompt,   // the prompt is there, and its session goes on
    kAnswer,   // the same, and the process may end with the answer
    kRest      // nobody asks now
  };
  // Of `kept`, rising, those of n_max tokens at most that are to be saved now.
  // `n_prompt`: the newest prompt's tokens.
  StatesToSave Choose(const std::vector<StateCheckpointPtr>& kept, int n_max,
                      int n_prompt, When when) const;
  void NoteSaved(const StatesToSave& saved);

  bool has(int n_tokens) const { return stored_.contains(n_tokens); }
  // The newest that is stored or on its way; 0: none.
  int last() const { return stored_.empty() ? 0 : *stored_.rbegin(); }
  // For a fork: what it did not write it never drops.
  StateSaves Fork() const;

 private:
  int grid_;
  std::set<int> stored_;      // positions, on their way included
  std::vector<int> written_;  // of them, by this session; rising
};

}  // namespace hearth
