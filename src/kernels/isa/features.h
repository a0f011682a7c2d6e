// The processor features that each instruction set's code is compiled with, and
// that dispatch.cc asks for before it runs any of it.
#pragma once

#define HEARTH_FEATURES_AVX2 "avx2,fma,f16c"
#define HEARTH_FEATURES_AVX512 \
  "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl"
#define HEARTH_FEATURES_AVX512VNNI \
  "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"
