// A tile's scores become weights against the running maximum of each row.

inline constexpr float kNothing = -std::numeric_limits<float>::infinity();

// The scores of one row become weights; returns their sum.
HEARTH_INLINE float WeightsOf(float* p, int first_group, int last_group,
                              float max) {
  Floats total = Splat(0.0f);
  for (int g = first_group; g < last_group; ++g) {
    const Floats weight = ExpNegative(Sub(Load(p + g * kLanes), Splat(max)));
    Store(p + g * kLanes, weight);
    total = Add(total, weight);
  }
  return ReduceAdd(total);
}

// Scores in p become weights; max and sum move on; scale[r] is the factor for
// the old accumulator. A row whose scores are all -infinity stays as it was.
template <int kRows>
HEARTH_INLINE void SoftmaxRows(float* p, std::int64_t p_stride, int first_group,
                               const int* visible, float* max, float* sum,
                               float (&scale)[kLanes]) {
  float difference[kLanes] = {};
  for (int r = 0; r < kRows; ++r) {
    const int last_group = (visible[r] + kLanes - 1) / kLanes;
    Floats largest = Splat(kNothing);
    for (int g = first_group; g < last_group; ++g) {
      largest = Max(largest, Load(p + r * p_stride + g * kLanes));
    }
    const float tile_max = ReduceMax(largest);
    if (tile_max > max[r]) {
      difference[r] = max[r] - tile_max;
      max[r] = tile_max;
    }
  }
  // All rows' factors at once; those whose maximum stood get exactly 1.
  Store(scale, ExpNegative(Load(difference)));
  for (int r = 0; r < kRows; ++r) {
    const int last_group = (visible[r] + kLanes - 1) / kLanes;
    // Against 0 every weight of a row without a maximum is exactly 0.
    const float against = max[r] == kNothing ? 0.0f : max[r];
    const float total =
        WeightsOf(p + r * p_stride, first_group, last_group, against);
    sum[r] = __builtin_fmaf(sum[r], scale[r], total);
  }
}
