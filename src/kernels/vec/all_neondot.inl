// Each builds on the ones before it.
// clang-format off
#include "kernels/vec/neon.h"
#include "kernels/vec/partial.h"
#include "kernels/vec/int8_bytes_neon.h"
#include "kernels/vec/int8_neondot.h"
// clang-format on
