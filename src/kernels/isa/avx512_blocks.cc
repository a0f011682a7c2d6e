#if defined(__x86_64__)
#include "kernels/isa/avx512.h"
#include "kernels/units/blocks.inl"
#endif
