#include "cuda/kernel_table.h"

#include <array>

#include "cuda/kernels/all.h"

namespace hearth::gpu {
namespace {

constexpr std::string_view kNames[] = {
#define HEARTH_KERNEL(name, function, Args, threads, blocks) #name,
#include "cuda/kernels/all.inl"
#undef HEARTH_KERNEL
};
constexpr int kThreads[] = {
#define HEARTH_KERNEL(name, function, Args, threads, blocks) threads,
#include "cuda/kernels/all.inl"
#undef HEARTH_KERNEL
};

}  // namespace

std::span<const std::string_view> KernelNames() { return kNames; }
std::span<const int> KernelThreads() { return kThreads; }

}  // namespace hearth::gpu
