#include "kernels/generic/headers.h"

namespace hearth {
namespace scalar {
namespace {

// Each builds on the ones before it.
// clang-format off
#include "kernels/vec/scalar.h"
#include "kernels/vec/int8_scalar.h"
#include "kernels/generic/all.inl"
// clang-format on

}  // namespace
}  // namespace scalar

constinit const Kernels kScalarKernels = scalar::MakeTable("scalar");

}  // namespace hearth
