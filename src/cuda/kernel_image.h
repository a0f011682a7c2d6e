// The kernels' machine code, made by nvcc when the program was built.
#pragma once

#include "base/bytes.h"

namespace hearth::gpu {

// A fat binary for the driver; empty when the build had no nvcc.
ByteSpan KernelImage();

}  // namespace hearth::gpu
