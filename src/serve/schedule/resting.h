// Conversations that nobody asks at the moment. Their blocks serve whoever
// begins with the same tokens; the one that goes on with all of them gets the
// sequence itself, with its newest tokens.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "serve/schedule/backend.h"

namespace hearth::serve {

class Resting {
 public:
  // Of a model with states, those of a conversation's newest tokens are worth
  // their files once nobody has asked for so long.
  static constexpr double kSettleMs = 2000;

  Resting(int n_max, bool has_states)
      : n_max_(n_max), has_states_(has_states) {}

  // Hands it to the prompt cache and lets the memory budget have it.
  void Add(std::unique_ptr<Sequence> sequence, const std::string& key_space,
           double now_ms);
  // The longest one that `prompt` goes on with; null: none.
  std::unique_ptr<Sequence> Take(std::span<const std::int32_t> prompt,
                                 const std::string& key_space);
  // Tries again what the writer had no room for, and what has rested long
  // enough.
  void Persist(double now_ms);
  // As if all had rested long enough.
  void Settle();
  bool has_unsaved() const;
  int size() const { return static_cast<int>(all_.size()); }

 private:
  struct One {
    std::unique_ptr<Sequence> sequence;
    std::string key_space;
    std::vector<std::int32_t> tokens;
    bool saved;
    bool settled;  // with the newest states
    double since_ms;
  };
  const int n_max_;
  const bool has_states_;
  std::list<One> all_;  // the longest resting one first
};

}  // namespace hearth::serve
