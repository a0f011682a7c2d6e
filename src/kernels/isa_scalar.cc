#include "kernels/generic/headers.h"

namespace hearth {
namespace scalar {
namespace {

#include "kernels/generic/all.inl"
#include "kernels/vec/int8_scalar.h"
#include "kernels/vec/scalar.h"

}  // namespace
}  // namespace scalar

constinit const Kernels kScalarKernels = scalar::MakeTable("scalar");

}  // namespace hearth
