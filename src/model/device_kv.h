// What a device with memory of its own needs of a sequence's keys and values:
// whole blocks, as they lie on disk. A block's bytes have their place in the
// host's memory; a device may hold a copy, and the newest bytes may be there
// alone until somebody asks for them.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "base/mutex.h"
#include "hearth/result.h"
#include "tensor/kv_format.h"

namespace hearth {

// A device's copy of some bytes.
//
// Threads  any.
class DeviceCopy {
 public:
  virtual ~DeviceCopy() = default;
  // Brings what is newer in the copy to `host`. kIo: the device has failed.
  virtual Result<void> Fetch(std::span<std::byte> host) = 0;
};

// Where a block keeps the copy that a device has of it.
class CopyHolder {
 public:
  std::shared_ptr<DeviceCopy> Get() const {
    const MutexLock lock(mutex_);
    return copy_;
  }
  void Set(std::shared_ptr<DeviceCopy> copy) {
    const MutexLock lock(mutex_);
    // What goes is destroyed behind the lock.
    copy_.swap(copy);
  }
  Result<void> Fetch(std::span<std::byte> host) const {
    const std::shared_ptr<DeviceCopy> copy = Get();
    return copy == nullptr ? Result<void>() : copy->Fetch(host);
  }

 private:
  mutable Mutex mutex_;
  std::shared_ptr<DeviceCopy> copy_ HEARTH_GUARDED_BY(mutex_);
};

struct DeviceBlock {
  std::span<std::byte> bytes;    // empty: there is none
  CopyHolder* holder = nullptr;  // of the copy
};

// Where one layer's tiles lie in a block; offsets in bytes.
struct KvPlaceInBlock {
  KvFormat key_format, value_format;
  std::size_t layer;           // the layer's start in the block
  std::size_t keys, key_step;  // in the layer: head 0, from head to head
  std::size_t values, value_step;
  std::size_t key_params, value_params;  // from a tile's start
};

class DeviceKvPort {
 public:
  virtual ~DeviceKvPort() = default;

  // Blocks that the sequence has; of one that quantises, full ones alone.
  virtual int n_device_blocks() const = 0;
  // None when it was let go of.
  virtual DeviceBlock BlockAt(int block) = 0;
  // Of a sequence that quantises: block `block`, which the step fills, in
  // floats. None for blocks that begin and end within the step.
  virtual DeviceBlock FloatsAt(int block) = 0;
  // Of a full block, or of one in floats.
  virtual std::size_t BytesOfBlock(bool floats) const = 0;
  virtual KvPlaceInBlock PlaceOf(int kv_layer, bool floats) const = 0;
};

}  // namespace hearth
