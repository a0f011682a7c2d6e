#include "model/cpu/rope_table.h"

#include <cmath>

namespace hearth {
namespace {

// The reference multiplies in float, which is followed where models are
// trained. Far behind, where only windows look, a float product would be wrong
// by more than neighbouring positions may differ.
constexpr int kFloatPositions = 1 << 17;

double Angle(int position, float inv_freq) {
  if (position < kFloatPositions) {
    return static_cast<double>(static_cast<float>(position) * inv_freq);
  }
  return static_cast<double>(position) * static_cast<double>(inv_freq);
}

}  // namespace

void RopeTable::Compute(const RopeConfig& rope,
                        std::span<const int> positions) {
  pairs_ = static_cast<std::int64_t>(rope.inv_freq.size());
  cos_.resize(rope.inv_freq.size() * positions.size());
  sin_.resize(cos_.size());
  std::size_t i = 0;
  for (const int position : positions) {
    for (const float inv_freq : rope.inv_freq) {
      // The cosine in double, so that the rounded result is the same in every
      // C library.
      const double angle = Angle(position, inv_freq);
      cos_[i] = static_cast<float>(std::cos(angle)) * rope.cos_sin_factor;
      sin_[i] = static_cast<float>(std::sin(angle)) * rope.cos_sin_factor;
      ++i;
    }
  }
}

}  // namespace hearth
