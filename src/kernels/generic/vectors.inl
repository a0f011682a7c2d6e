// Walks over floats by sixteen at a time.

constexpr std::int64_t RoundUp(std::int64_t n, std::int64_t to) {
  return (n + to - 1) / to * to;
}

// f(i, count) for every run of sixteen values, the last one perhaps shorter.
template <class F>
HEARTH_INLINE void ForEachVector(std::int64_t n, F f) {
  std::int64_t i = 0;
  for (; i + kLanes <= n; i += kLanes) f(i, kLanes);
  if (i < n) f(i, static_cast<int>(n - i));
}
HEARTH_INLINE Floats LoadUpTo(const float* p, int count) {
  return count == kLanes ? Load(p) : LoadN(p, count);
}
HEARTH_INLINE void StoreUpTo(float* p, Floats a, int count) {
  if (count == kLanes) {
    Store(p, a);
  } else {
    StoreN(p, a, count);
  }
}
