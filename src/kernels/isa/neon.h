// How a translation unit of kernels is compiled for AArch64, whose baseline has
// Advanced SIMD. Included once, before one of kernels/units.
#pragma once

#include <arm_neon.h>

#include "kernels/generic/headers.h"

#define HEARTH_ISA neon
#define HEARTH_ISA_NAME "neon"
#define HEARTH_ISA_TABLE kNeonKernels
#define HEARTH_ISA_VECTORS "kernels/vec/all_neon.inl"
#define HEARTH_ISA_BEGIN
#define HEARTH_ISA_END
