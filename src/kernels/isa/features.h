// The processor features that each instruction set's code is compiled with, and
// that dispatch.cc asks for before it runs any of it.
#pragma once

#define HEARTH_FEATURES_AVX2 "avx2,fma,f16c"
#define HEARTH_FEATURES_AVX512 \
  "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl"
#define HEARTH_FEATURES_AVX512VNNI \
  "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"

// The compilers write Arm's features each in its way.
#if defined(__clang__)
#define HEARTH_FEATURES_NEONDOT "dotprod"
#else
#define HEARTH_FEATURES_NEONDOT "arch=armv8.2-a+dotprod"
#endif
