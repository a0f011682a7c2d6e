#include "model/rope_table.h"

#include <cmath>

namespace hearth {

void RopeTable::Compute(const RopeConfig& rope, int first_position,
                        int n_rows) {
  pairs_ = static_cast<std::int64_t>(rope.inv_freq.size());
  cos_.resize(rope.inv_freq.size() * static_cast<std::size_t>(n_rows));
  sin_.resize(cos_.size());
  std::size_t i = 0;
  for (int t = 0; t < n_rows; ++t) {
    const auto position = static_cast<float>(first_position + t);
    for (const float inv_freq : rope.inv_freq) {
      // The angle in float, as the reference computes it; its cosine in
      // double, so that the rounded result is the same in every C library.
      const auto angle = static_cast<double>(position * inv_freq);
      cos_[i] = static_cast<float>(std::cos(angle)) * rope.cos_sin_factor;
      sin_[i] = static_cast<float>(std::sin(angle)) * rope.cos_sin_factor;
      ++i;
    }
  }
}

}  // namespace hearth
