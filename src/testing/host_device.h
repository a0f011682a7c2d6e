// A device whose memory is the host's and whose kernels run there: every
// kernel, and whole models on them, are tested where there is no GPU.
#pragma once

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "cuda/device.h"
#include "cuda/kernel_table.h"
#include "cuda/kernels/all.h"

namespace hearth::gpu {

class HostDevice final : public Device {
 public:
  // `bytes_max`: of memory; 0: no limit.
  explicit HostDevice(std::uint64_t bytes_max = 0) : bytes_max_(bytes_max) {}

  std::string_view name() const override { return "the host"; }
  int n_processors() const override { return 2; }
  std::uint64_t total_bytes() const override {
    return bytes_max_ > 0 ? bytes_max_ : std::uint64_t{1} << 40;
  }
  std::uint64_t free_bytes() const override { return total_bytes() - used_; }

  Result<Address> Allocate(std::uint64_t bytes) override {
    if (bytes > free_bytes()) {
      return {Code::kResourceFull, "the host device is full"};
    }
    struct alignas(256) Align {
      std::byte bytes[256];
    };
    auto memory = std::make_unique<Align[]>(
        static_cast<std::size_t>(bytes / sizeof(Align) + 1));
    // What nobody wrote must not matter: NaN, and no address of anything.
    std::memset(memory.get(), 0xff, static_cast<std::size_t>(bytes));
    const auto at = reinterpret_cast<Address>(memory.get());
    used_ += bytes;
    memory_[at] = {
        std::shared_ptr<void>(memory.release(),
                              [](void* p) { delete[] static_cast<Align*>(p); }),
        bytes};
    return at;
  }
  void Free(Address at) override {
    used_ -= memory_.at(at).second;
    memory_.erase(at);
  }
  void Upload(Address to, ByteSpan from) override {
    if (!from.empty()) {
      std::memcpy(reinterpret_cast<void*>(to), from.data(), from.size());
    }
  }
  void Clear(Address at, std::uint64_t bytes) override {
    std::memset(reinterpret_cast<void*>(at), 0,
                static_cast<std::size_t>(bytes));
  }
  using Device::Download;
  void Download(std::span<const gpu::DownloadPart> parts) override {
    for (const gpu::DownloadPart& part : parts) {
      if (part.to.empty()) continue;
      std::memcpy(part.to.data(), reinterpret_cast<const void*>(part.from),
                  part.to.size());
    }
  }
  void Run(const Launch& launch) override {
    std::vector<std::max_align_t> shared(
        static_cast<std::size_t>(launch.shared_bytes) /
            sizeof(std::max_align_t) +
        1);
    ++n_launches_;
    const int threads =
        KernelThreads()[static_cast<std::size_t>(launch.kernel)];
    for (unsigned z = 0; z < launch.grid.z; ++z) {
      for (unsigned y = 0; y < launch.grid.y; ++y) {
        for (unsigned x = 0; x < launch.grid.x; ++x) {
          std::memset(shared.data(), 0xff,
                      shared.size() * sizeof(std::max_align_t));
          Run(launch, Block({x, y, z}, threads,
                            reinterpret_cast<std::byte*>(shared.data())));
        }
      }
    }
  }
  Result<void> Wait() override { return {}; }

  int n_launches() const { return n_launches_; }

 private:
  template <class Args>
  static const Args& ArgsOf(const Launch& launch) {
    return *reinterpret_cast<const Args*>(launch.args.data());
  }
  static void Run(const Launch& launch, const Block& block) {
    switch (launch.kernel) {
#define HEARTH_KERNEL(name, function, Args, threads, blocks) \
  case Kernel::k##name:                                      \
    function(block, ArgsOf<Args>(launch));                   \
    break;
#include "cuda/kernels/all.inl"
#undef HEARTH_KERNEL
    }
  }

  const std::uint64_t bytes_max_;
  std::uint64_t used_ = 0;
  int n_launches_ = 0;
  std::map<Address, std::pair<std::shared_ptr<void>, std::uint64_t>> memory_;
};

}  // namespace hearth::gpu
