// The kernel tables that this build has, one per instruction set. Each lives in
// its own files, isa/*; only dispatch.cc may decide that the CPU can run one.
#pragma once

#include "kernels/kernels.h"

namespace hearth {

extern const Kernels kScalarKernels;
#if defined(__x86_64__)
extern const Kernels kAvx2Kernels;
extern const Kernels kAvx512Kernels;
extern const Kernels kAvx512VnniKernels;
#elif defined(__aarch64__)
extern const Kernels kNeonKernels;
extern const Kernels kNeonDotKernels;
#endif

}  // namespace hearth
