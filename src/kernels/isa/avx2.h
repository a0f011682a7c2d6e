// How a translation unit of kernels is compiled for AVX2. Included once, before
// one of kernels/units.
#pragma once

#include <immintrin.h>

#include "kernels/generic/headers.h"
#include "kernels/isa/features.h"

#define HEARTH_ISA avx2
#define HEARTH_ISA_NAME "avx2"
#define HEARTH_ISA_TABLE kAvx2Kernels
#define HEARTH_ISA_VECTORS "kernels/vec/all_avx2.inl"
#define HEARTH_ISA_BEGIN HEARTH_BEGIN_TARGET(HEARTH_FEATURES_AVX2)
#define HEARTH_ISA_END HEARTH_END_TARGET
