#if defined(__aarch64__)
#include "kernels/isa/neon.h"
#include "kernels/units/blocks.inl"
#endif
