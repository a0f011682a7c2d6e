// Cosines and sines of a step's positions for one set of rotary frequencies.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "model/config.h"

namespace hearth {

class RopeTable {
 public:
  // For the given positions.
  void Compute(const RopeConfig& rope, std::span<const int> positions);

  const float* cos(std::int64_t row) const {
    return cos_.data() + row * pairs_;
  }
  const float* sin(std::int64_t row) const {
    return sin_.data() + row * pairs_;
  }

 private:
  std::int64_t pairs_ = 0;
  std::vector<float> cos_, sin_;  // [n_rows][rotary_dim / 2]
};

}  // namespace hearth
