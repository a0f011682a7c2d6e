#if defined(__x86_64__)
#include "kernels/isa/avx512vnni.h"
#include "kernels/units/table.inl"
#endif
