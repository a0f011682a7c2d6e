// How a translation unit of kernels is compiled for AVX-512 with VNNI. Included
// once, before one of kernels/units.
#pragma once

#include <immintrin.h>

#include "kernels/generic/headers.h"
#include "kernels/isa/features.h"

// g++ 12 takes the deliberately undefined operands inside its own AVX-512
// header for mistakes.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

#define HEARTH_ISA avx512vnni
#define HEARTH_ISA_NAME "avx512vnni"
#define HEARTH_ISA_TABLE kAvx512VnniKernels
#define HEARTH_ISA_VECTORS "kernels/vec/all_avx512vnni.inl"
#define HEARTH_ISA_BEGIN HEARTH_BEGIN_TARGET(HEARTH_FEATURES_AVX512VNNI)
#define HEARTH_ISA_END HEARTH_END_TARGET
