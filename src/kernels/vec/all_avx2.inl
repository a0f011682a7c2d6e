// Each builds on the ones before it.
// clang-format off
#include "kernels/vec/avx2.h"
#include "kernels/vec/partial.h"
#include "kernels/vec/int8_avx2.h"
// clang-format on
