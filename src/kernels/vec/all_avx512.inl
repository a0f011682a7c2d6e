// Each builds on the ones before it.
// clang-format off
#include "kernels/vec/avx512.h"
#include "kernels/vec/int8_bytes512.h"
#include "kernels/vec/int8_avx512.h"
// clang-format on
