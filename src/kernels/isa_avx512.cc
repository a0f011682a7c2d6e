#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/generic/headers.h"

// g++ 12 takes the deliberately undefined operands inside its own AVX-512
// header for mistakes.
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif

HEARTH_BEGIN_TARGET("avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl")
namespace hearth {
namespace avx512 {
namespace {

// Each builds on the ones before it.
// clang-format off
#include "kernels/vec/avx512.h"
#include "kernels/vec/int8_bytes512.h"
#include "kernels/vec/int8_avx512.h"
#include "kernels/generic/all.inl"
// clang-format on

}  // namespace
}  // namespace avx512

constinit const Kernels kAvx512Kernels = avx512::MakeTable("avx512");

}  // namespace hearth
HEARTH_END_TARGET

#endif  // __x86_64__
