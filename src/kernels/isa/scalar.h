// How a translation unit of kernels is compiled for any processor. Included
// once, before one of kernels/units.
#pragma once

#include "kernels/generic/headers.h"

#define HEARTH_ISA scalar
#define HEARTH_ISA_NAME "scalar"
#define HEARTH_ISA_TABLE kScalarKernels
#define HEARTH_ISA_VECTORS "kernels/vec/all_scalar.inl"
#define HEARTH_ISA_BEGIN
#define HEARTH_ISA_END
