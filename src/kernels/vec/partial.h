// Fewer lanes than there are, by way of a buffer: where the instruction set has
// no masked loads. Contracts: vec/scalar.h.

HEARTH_INLINE Floats LoadN(const float* p, int n) {
  float buffer[kLanes] = {};
  for (int i = 0; i < n; ++i) buffer[i] = p[i];
  return Load(buffer);
}
HEARTH_INLINE void StoreN(float* p, Floats a, int n) {
  float buffer[kLanes];
  Store(buffer, a);
  for (int i = 0; i < n; ++i) p[i] = buffer[i];
}
