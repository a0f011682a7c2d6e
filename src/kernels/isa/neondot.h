// How a translation unit of kernels is compiled for AArch64 with dot products
// of bytes (Armv8.4, and most since 2018). Included once, before one of
// kernels/units.
#pragma once

#include <arm_neon.h>

#include "kernels/generic/headers.h"
#include "kernels/isa/features.h"

#define HEARTH_ISA neondot
#define HEARTH_ISA_NAME "neondot"
#define HEARTH_ISA_TABLE kNeonDotKernels
#define HEARTH_ISA_VECTORS "kernels/vec/all_neondot.inl"
#define HEARTH_ISA_BEGIN HEARTH_BEGIN_TARGET(HEARTH_FEATURES_NEONDOT)
#define HEARTH_ISA_END HEARTH_END_TARGET
