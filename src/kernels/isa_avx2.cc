#if defined(__x86_64__)

#include <immintrin.h>

#include "kernels/generic/headers.h"

HEARTH_BEGIN_TARGET("avx2,fma,f16c")
namespace hearth {
namespace avx2 {
namespace {

// Each builds on the ones before it.
// clang-format off
#include "kernels/vec/avx2.h"
#include "kernels/vec/int8_avx2.h"
#include "kernels/generic/all.inl"
// clang-format on

}  // namespace
}  // namespace avx2

constinit const Kernels kAvx2Kernels = avx2::MakeTable("avx2");

}  // namespace hearth
HEARTH_END_TARGET

#endif  // __x86_64__
