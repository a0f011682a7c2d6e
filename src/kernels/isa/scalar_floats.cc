#include "kernels/isa/scalar.h"
#include "kernels/units/floats.inl"
