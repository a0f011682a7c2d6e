#if defined(__x86_64__)
#include "kernels/isa/avx2.h"
#include "kernels/units/blocks.inl"
#endif
