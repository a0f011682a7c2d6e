// Where the states of a spec stand in a slab, in memory and in a file: one
// behind the other, each on 64 bytes, zeros between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "model/state_shape.h"

namespace hearth {

class StateLayout {
 public:
  static constexpr std::size_t kAlign = 64;

  explicit StateLayout(std::span<const StateShape> shapes) {
    for (const StateShape& shape : shapes) {
      offsets_.push_back(bytes_);
      const auto n = static_cast<std::size_t>(shape.n_floats()) * sizeof(float);
      ends_.push_back(bytes_ + n);
      bytes_ += (n + kAlign - 1) / kAlign * kAlign;
    }
  }

  int n_states() const { return static_cast<int>(offsets_.size()); }
  // Of all of them; 0: the spec has none.
  std::size_t bytes() const { return bytes_; }
  std::size_t offset(int state) const {
    return offsets_[static_cast<std::size_t>(state)];
  }
  // Where its numbers end; zeros follow.
  std::size_t end(int state) const {
    return ends_[static_cast<std::size_t>(state)];
  }
  // Padding included.
  std::size_t length(int state) const {
    return (state + 1 == n_states() ? bytes_ : offset(state + 1)) -
           offset(state);
  }

 private:
  std::vector<std::size_t> offsets_, ends_;
  std::size_t bytes_ = 0;
};

}  // namespace hearth
