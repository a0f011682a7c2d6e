#include "model/cuda/device_kv_memory.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/check.h"

namespace hearth {
namespace {

// Memory of a device is taken in pieces of about so much.
constexpr std::uint64_t kChunkBytes = std::uint64_t{64} << 20;

}  // namespace

struct DeviceKvMemory::Entry {
  gpu::Address slot = 0;  // 0: none
  std::size_t bytes = 0;
  bool newer = false;  // than the host's
  std::span<std::byte> host;
  std::uint64_t step = 0;  // the last that touched it
  std::list<Entry*>::iterator place;
};

class DeviceKvMemory::Copy final : public DeviceCopy {
 public:
  explicit Copy(std::shared_ptr<DeviceKvMemory> memory)
      : memory_(std::move(memory)) {}
  ~Copy() override {
    const MutexLock lock(memory_->mutex_);
    memory_->Leave(entry_);
  }
  Result<void> Fetch(std::span<std::byte> host) override {
    const MutexLock lock(memory_->mutex_);
    return memory_->Bring(entry_, host);
  }
  Entry& entry() { return entry_; }

 private:
  const std::shared_ptr<DeviceKvMemory> memory_;
  Entry entry_;  // of the memory, under its lock
};

std::shared_ptr<DeviceKvMemory> DeviceKvMemory::Make(
    std::shared_ptr<gpu::Device> device, std::uint64_t bytes_max) {
  return std::shared_ptr<DeviceKvMemory>(
      new DeviceKvMemory(std::move(device), bytes_max));
}

DeviceKvMemory::~DeviceKvMemory() {
  const MutexLock lock(mutex_);
  for (const Slots& slots : slots_) {
    for (const gpu::Address chunk : slots.chunks) device_->Free(chunk);
  }
}

void DeviceKvMemory::BeginStep() {
  const MutexLock lock(mutex_);
  ++step_;
}

DeviceKvMemory::Slots& DeviceKvMemory::SlotsOf(std::size_t bytes) {
  for (Slots& slots : slots_) {
    if (slots.bytes == bytes) return slots;
  }
  slots_.push_back({bytes, {}, {}});
  return slots_.back();
}

bool DeviceKvMemory::Touch(const DeviceBlock& block) {
  const auto copy = std::static_pointer_cast<Copy>(block.holder->Get());
  if (copy == nullptr) return true;
  const MutexLock lock(mutex_);
  Entry& entry = copy->entry();
  entry.step = step_;
  if (entry.slot == 0) return true;
  resident_.splice(resident_.end(), resident_, entry.place);
  return false;
}

bool DeviceKvMemory::Grow(Slots& slots, int n) {
  const auto wanted = static_cast<std::uint64_t>(n) * slots.bytes;
  const std::uint64_t most = bytes_max_ - std::min(bytes_max_, bytes_used_);
  const std::uint64_t bytes =
      std::min(std::max(wanted, kChunkBytes), most) / slots.bytes * slots.bytes;
  if (bytes == 0) return false;
  const auto chunk = device_->Allocate(bytes);
  if (!chunk.ok()) return false;
  bytes_used_ += bytes;
  slots.chunks.push_back(*chunk);
  // Taken from the back: lowest address first.
  for (std::uint64_t at = bytes; at > 0; at -= slots.bytes) {
    slots.free.push_back(*chunk + at - slots.bytes);
  }
  return true;
}

bool DeviceKvMemory::EvictOne(std::size_t bytes) {
  for (Entry* entry : resident_) {
    if (entry->step == step_) break;
    if (SlotBytes(entry->bytes) != bytes) continue;
    // What cannot be brought home stays: a failed device says so itself.
    if (!Bring(*entry, entry->host).ok()) return false;
    Leave(*entry);
    return true;
  }
  return false;
}

Result<void> DeviceKvMemory::MakeRoom(std::size_t block_bytes, int n) {
  const MutexLock lock(mutex_);
  Slots& slots = SlotsOf(SlotBytes(block_bytes));
  while (static_cast<int>(slots.free.size()) < n) {
    const int missing = n - static_cast<int>(slots.free.size());
    if (!Grow(slots, missing) && !EvictOne(slots.bytes)) {
      const std::uint64_t wanted =
          static_cast<std::uint64_t>(missing) * slots.bytes;
      return {Code::kResourceFull,
              "the keys and values of this step need " +
                  std::to_string((wanted >> 20) + 1) + " MiB more than the " +
                  std::to_string(bytes_max_ >> 20) +
                  " MiB that the card has for them; use a shorter context, a "
                  "smaller KV format, or the CPU"};
    }
  }
  return {};
}

gpu::Address DeviceKvMemory::Bind(const DeviceBlock& block, bool upload) {
  auto copy = std::static_pointer_cast<Copy>(block.holder->Get());
  const bool fresh = copy == nullptr;
  if (fresh) copy = std::make_shared<Copy>(shared_from_this());
  {
    const MutexLock lock(mutex_);
    Entry& entry = copy->entry();
    entry.step = step_;
    if (entry.slot == 0) {
      Slots& slots = SlotsOf(SlotBytes(block.bytes.size()));
      HEARTH_CHECK(!slots.free.empty());
      entry.slot = slots.free.back();
      slots.free.pop_back();
      entry.bytes = block.bytes.size();
      entry.place = resident_.insert(resident_.end(), &entry);
      if (upload) {
        device_->Upload(entry.slot, block.bytes);
      } else {
        // Padding is part of what is stored.
        device_->Clear(entry.slot, entry.bytes);
      }
    }
  }
  if (fresh) block.holder->Set(copy);
  const MutexLock lock(mutex_);
  return copy->entry().slot;
}

void DeviceKvMemory::Written(const DeviceBlock& block) {
  const auto copy = std::static_pointer_cast<Copy>(block.holder->Get());
  const MutexLock lock(mutex_);
  copy->entry().newer = true;
  copy->entry().host = block.bytes;
}

Result<void> DeviceKvMemory::Bring(Entry& entry, std::span<std::byte> host) {
  if (!entry.newer || entry.slot == 0) return {};
  device_->Download(host, entry.slot);
  HEARTH_TRY(device_->Wait());
  entry.newer = false;
  return {};
}

void DeviceKvMemory::Leave(Entry& entry) {
  if (entry.slot == 0) return;
  SlotsOf(SlotBytes(entry.bytes)).free.push_back(entry.slot);
  resident_.erase(entry.place);
  entry.slot = 0;
}

}  // namespace hearth
