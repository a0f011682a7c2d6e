// Blocks of keys and values in a device's memory: copies of blocks that have
// their place in the host's. A step's blocks are brought there before it, and
// stay as long as there is room; what a device wrote goes to the host when
// somebody asks for it, or when its room is wanted.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "base/mutex.h"
#include "cuda/device.h"
#include "model/device_kv.h"

namespace hearth {

class DeviceKvMemory : public std::enable_shared_from_this<DeviceKvMemory> {
 public:
  // At most `bytes_max` of the device.
  static std::shared_ptr<DeviceKvMemory> Make(
      std::shared_ptr<gpu::Device> device, std::uint64_t bytes_max);
  ~DeviceKvMemory();

  // A step begins: blocks that it does not touch may be let go of for it.
  void BeginStep();
  // The step needs the block, which has a copy or will get one. Gives whether
  // it has none now.
  bool Touch(const DeviceBlock& block);
  // Room for so many more blocks of so many bytes. kResourceFull with the sum.
  Result<void> MakeRoom(std::size_t block_bytes, int n);
  // Where the block lies. `upload`: the host has bytes of it that count, and
  // the copy is new. REQUIRES: MakeRoom has counted the block.
  gpu::Address Bind(const DeviceBlock& block, bool upload);
  // The device writes into the block: the host's bytes are old.
  void Written(const DeviceBlock& block);

 private:
  struct Entry;
  class Copy;
  // Slots of one size.
  struct Slots {
    std::size_t bytes = 0;
    std::vector<gpu::Address> free;
    std::vector<gpu::Address> chunks;
  };

  DeviceKvMemory(std::shared_ptr<gpu::Device> device, std::uint64_t bytes_max)
      : device_(std::move(device)), bytes_max_(bytes_max) {}

  Slots& SlotsOf(std::size_t bytes) HEARTH_REQUIRES(mutex_);
  bool Grow(Slots& slots, int n) HEARTH_REQUIRES(mutex_);
  bool EvictOne(std::size_t bytes) HEARTH_REQUIRES(mutex_);
  Result<void> Bring(Entry& entry, std::span<std::byte> host)
      HEARTH_REQUIRES(mutex_);
  void Leave(Entry& entry) HEARTH_REQUIRES(mutex_);
  static std::size_t SlotBytes(std::size_t block_bytes) {
    return (block_bytes + 255) / 256 * 256;
  }

  const std::shared_ptr<gpu::Device> device_;
  const std::uint64_t bytes_max_;
  Mutex mutex_;
  std::uint64_t bytes_used_ HEARTH_GUARDED_BY(mutex_) = 0;
  std::vector<Slots> slots_ HEARTH_GUARDED_BY(mutex_);
  // Those with a slot, the longest unused first.
  std::list<Entry*> resident_ HEARTH_GUARDED_BY(mutex_);
  std::uint64_t step_ HEARTH_GUARDED_BY(mutex_) = 0;
};

}  // namespace hearth
