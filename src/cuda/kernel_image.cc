#include "cuda/kernel_image.h"

#ifdef HEARTH_HAS_CUDA_KERNELS
extern "C" {
extern const std::byte hearth_cuda_kernels[];
extern const std::byte hearth_cuda_kernels_end[];
}
#endif

namespace hearth::gpu {

ByteSpan KernelImage() {
#ifdef HEARTH_HAS_CUDA_KERNELS
  return {hearth_cuda_kernels, hearth_cuda_kernels_end};
#else
  return {};
#endif
}

}  // namespace hearth::gpu
