// Where a matrix product goes: sums of sixteen outputs, the bias added last.

struct MatmulOutput {
  const float* bias;
  float* y;
  std::int64_t y_stride;
};

HEARTH_INLINE void StoreOutputs(const MatmulOutput& out, std::int64_t row,
                                std::int64_t n, int count, Floats sums) {
  float* y = out.y + row * out.y_stride + n;
  if (count == kLanes) {
    if (out.bias) sums = Add(sums, Load(out.bias + n));
    Store(y, sums);
  } else {
    if (out.bias) sums = Add(sums, LoadN(out.bias + n, count));
    StoreN(y, sums, count);
  }
}
