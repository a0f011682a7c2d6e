// A sequence's blocks as a device with memory of its own takes them.
#pragma once

#include "cache/block_table.h"
#include "cache/kv_layout.h"
#include "cache/tail_blocks.h"
#include "model/device_kv.h"

namespace hearth {

class SequenceOnDevice final : public DeviceKvPort {
 public:
  // All must outlive the object.
  SequenceOnDevice(const BlockTable& table, TailBlocks& tails,
                   const KvLayout& layout)
      : table_(table), tails_(tails), layout_(layout) {}

  int n_device_blocks() const override { return table_.size(); }
  DeviceBlock BlockAt(int block) override {
    const BlockPtr& held = table_.At(block);
    return held == nullptr ? DeviceBlock{} : held->for_device();
  }
  DeviceBlock FloatsAt(int block) override { return tails_.ForDevice(block); }
  std::size_t BytesOfBlock(bool floats) const override {
    return LayoutOf(floats).block_bytes();
  }
  KvPlaceInBlock PlaceOf(int kv_layer, bool floats) const override {
    return LayoutOf(floats).PlaceOf(kv_layer);
  }

 private:
  const KvLayout& LayoutOf(bool floats) const {
    return floats ? tails_.layout() : layout_;
  }

  const BlockTable& table_;
  TailBlocks& tails_;
  const KvLayout& layout_;
};

}  // namespace hearth
