#include "kernels/isa/scalar.h"
#include "kernels/units/blocks.inl"
