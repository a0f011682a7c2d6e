// The kernels as the GPU runs them. nvcc makes one file of machine code of this
// (CMakeLists.txt); nothing else is read by it.
#include "cuda/kernels/all.h"

namespace hearth::gpu {

extern __shared__ __align__(16) std::byte shared_memory[];

#define HEARTH_KERNEL(name, function, Args, threads)                   \
  extern "C" __global__ void __launch_bounds__(threads)                \
      hearth_##name(const __grid_constant__ Args args) {               \
    function(Block(shared_memory), args);                              \
  }
#include "cuda/kernels/all.inl"
#undef HEARTH_KERNEL

}  // namespace hearth::gpu
