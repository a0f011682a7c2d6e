// Each builds on the ones before it.
// clang-format off
#include "kernels/vec/scalar.h"
#include "kernels/vec/int8_scalar.h"
// clang-format on
