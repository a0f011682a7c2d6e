#include "kernels/isa/scalar.h"
#include "kernels/units/table.inl"
