// Names and sizes of the kernels, by Kernel.
#pragma once

#include <span>
#include <string_view>

namespace hearth::gpu {

std::span<const std::string_view> KernelNames();
std::span<const int> KernelThreads();

// Shared memory that a block may ask for, on every card that is supported.
inline constexpr int kSharedBytesPerBlock = 96 << 10;

}  // namespace hearth::gpu
