#include "kernels/generic/headers.h"

namespace hearth {
namespace scalar {
namespace {

// clang-format off: each builds on the ones before it
#include "kernels/generic/all.inl"
#include "kernels/vec/int8_scalar.h"
#include "kernels/vec/scalar.h"
// clang-format on

}  // namespace
}  // namespace scalar

constinit const Kernels kScalarKernels = scalar::MakeTable("scalar");

}  // namespace hearth
