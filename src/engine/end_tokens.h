// Which tokens end an answer: those that the model's own configuration names
// and those that its tokenizer does. Nothing else in the engine decides it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace hearth {

class EndTokens {
 public:
  EndTokens() = default;
  EndTokens(std::span<const std::int32_t> of_model,
            std::span<const std::int32_t> of_tokenizer)
      : ids_(of_model.begin(), of_model.end()) {
    ids_.insert(ids_.end(), of_tokenizer.begin(), of_tokenizer.end());
  }

  bool Contains(std::int32_t id) const {
    return std::find(ids_.begin(), ids_.end(), id) != ids_.end();
  }

 private:
  std::vector<std::int32_t> ids_;
};

}  // namespace hearth
