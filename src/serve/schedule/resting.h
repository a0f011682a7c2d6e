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
  explicit Resting(int n_max) : n_max_(n_max) {}

  // Hands it to the prompt cache and lets the memory budget have it.
  void Add(std::unique_ptr<Sequence> sequence, const std::string& key_space);
  // The longest one that `prompt` goes on with; null: none.
  std::unique_ptr<Sequence> Take(std::span<const std::int32_t> prompt,
                                 const std::string& key_space);
  // Tries again what the writer had no room for.
  void Persist();
  bool has_unsaved() const;
  int size() const { return static_cast<int>(all_.size()); }

 private:
  struct One {
    std::unique_ptr<Sequence> sequence;
    std::string key_space;
    std::vector<std::int32_t> tokens;
    bool saved;
  };
  const int n_max_;
  std::list<One> all_;  // the longest resting one first
};

}  // namespace hearth::serve
