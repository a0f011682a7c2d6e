// A device that runs the kernels of this room: memory of its own, and one queue
// in which copies and kernels run in order. cuda/driver_device.h is an NVIDIA
// card; tests have one that runs the kernels on the host.
//
// Errors   a device that fails at one operation fails at all that follow;
//          Wait() says why. Only Allocate fails on its own.
// Threads  any; one at a time enqueues steps, others may copy meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "cuda/simt.h"
#include "hearth/result.h"

namespace hearth::gpu {

// Of a byte in a device's memory; 0: none.
using Address = std::uint64_t;

enum class Kernel : std::uint8_t {
#define HEARTH_KERNEL(name, function, Args, threads, blocks) k##name,
#include "cuda/kernels/all.inl"
#undef HEARTH_KERNEL
};

struct Launch {
  Kernel kernel;
  Dim3 grid;
  int shared_bytes = 0;
  std::span<const std::byte> args;  // the kernel's one argument
};

// Bytes of a device, and where they go in the host's memory.
struct DownloadPart {
  std::span<std::byte> to;
  Address from;
};

class Device {
 public:
  virtual ~Device() = default;

  virtual std::string_view name() const = 0;
  virtual int n_processors() const = 0;  // that run blocks side by side
  virtual std::uint64_t total_bytes() const = 0;
  virtual std::uint64_t free_bytes() const = 0;

  // Aligned to 256 bytes; undefined content. kResourceFull.
  virtual Result<Address> Allocate(std::uint64_t bytes) = 0;
  virtual void Free(Address at) = 0;

  // In the queue's order; `from` may change when it returns.
  virtual void Upload(Address to, ByteSpan from) = 0;
  // Zeros, in the queue's order.
  virtual void Clear(Address at, std::uint64_t bytes) = 0;
  // Waits for what was enqueued before.
  virtual void Download(std::span<const gpu::DownloadPart> parts) = 0;
  void Download(std::span<std::byte> to, Address from) {
    const gpu::DownloadPart part{to, from};
    Download(std::span(&part, 1));
  }
  virtual void Run(const Launch& launch) = 0;
  // Waits for all that was enqueued. kIo with the first failure there was.
  virtual Result<void> Wait() = 0;

  template <class Args>
  void Run(Kernel kernel, Dim3 grid, const Args& args, int shared_bytes = 0) {
    if (grid.x == 0 || grid.y == 0 || grid.z == 0) return;
    Args copy = args;
    // Equal arguments are equal bytes: a card knows a step again by them.
#if defined(__has_builtin)
#if __has_builtin(__builtin_clear_padding)
    __builtin_clear_padding(&copy);
#endif
#endif
    Run({kernel, grid, shared_bytes, std::as_bytes(std::span(&copy, 1))});
  }
};

// Memory of a device that grows as needed and is given back at the end.
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(Device& device) : device_(&device) {}
  ~Buffer() { Drop(); }
  Buffer(Buffer&& other) noexcept
      : device_(other.device_),
        at_(std::exchange(other.at_, 0)),
        bytes_(std::exchange(other.bytes_, 0)) {}
  Buffer& operator=(Buffer&& other) noexcept {
    std::swap(device_, other.device_);
    std::swap(at_, other.at_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }

  // Room for so many bytes; content is lost when it grows.
  Result<void> Reserve(std::uint64_t bytes) {
    if (bytes <= bytes_) return {};
    Drop();
    HEARTH_ASSIGN(at_, device_->Allocate(bytes));
    bytes_ = bytes;
    return {};
  }
  Address at() const { return at_; }
  template <class T>
  T* As() const {
    return reinterpret_cast<T*>(at_);
  }
  std::uint64_t bytes() const { return bytes_; }

 private:
  void Drop() {
    if (at_ != 0) device_->Free(std::exchange(at_, 0));
    bytes_ = 0;
  }

  Device* device_ = nullptr;
  Address at_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace hearth::gpu
