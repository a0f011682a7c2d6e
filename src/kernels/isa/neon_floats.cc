#if defined(__aarch64__)
#include "kernels/isa/neon.h"
#include "kernels/units/floats.inl"
#endif
