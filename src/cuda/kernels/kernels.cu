// The kernels as the GPU runs them. nvcc makes one file of machine code of this
// (CMakeLists.txt); nothing else is read by it.
#include "cuda/kernels/all.h"

namespace hearth::gpu {

extern __shared__ __align__(16) std::byte shared_memory[];

// From here on the launch behind this one may take processors that are free; it
// waits (Block::Await) before it touches what this one does.
#if __CUDA_ARCH__ >= 900
#define HEARTH_BEGIN_NEXT asm volatile("griddepcontrol.launch_dependents;")
#else
#define HEARTH_BEGIN_NEXT
#endif

#define HEARTH_KERNEL(name, function, Args, threads, blocks)    \
  extern "C" __global__ void __launch_bounds__(threads, blocks) \
      hearth_##name(const __grid_constant__ Args args) {        \
    HEARTH_BEGIN_NEXT;                                          \
    function(Block(shared_memory), args);                       \
  }
#include "cuda/kernels/all.inl"
#undef HEARTH_KERNEL

}  // namespace hearth::gpu
