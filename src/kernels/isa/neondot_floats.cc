#if defined(__aarch64__)
#include "kernels/isa/neondot.h"
#include "kernels/units/floats.inl"
#endif
