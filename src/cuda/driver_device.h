// An NVIDIA card as a Device.
#pragma once

#include <memory>

#include "cuda/device.h"

namespace hearth::gpu {

// Whether this program was built with kernels for cards, which needs nvcc.
bool HasKernels();

// The first card. kUnsupported, with cause and remedy, when this program has no
// kernels, there is no driver or no card, or the card is too old for them
// (before compute capability 8.0); kIo when the driver fails.
Result<std::shared_ptr<Device>> OpenCard();

}  // namespace hearth::gpu
