#include "cache/pool/huge_regions.h"

#include <sys/mman.h>

#include <algorithm>

namespace hearth {
namespace {

// Of x86-64, and of Arm with pages of 4 KiB.
constexpr std::uintptr_t kRegionBytes = std::uintptr_t{2} << 20;

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25  // Linux 6.1; younger than Debian 12's C library
#endif

}  // namespace

HugeRegions::HugeRegions(std::byte* base, std::size_t slot_bytes, int n_slots)
    : base_(reinterpret_cast<std::uintptr_t>(base)),
      first_region_((base_ + kRegionBytes - 1) / kRegionBytes * kRegionBytes),
      slot_bytes_(slot_bytes),
      slots_(static_cast<std::size_t>(n_slots), State::kFree) {
  const std::uintptr_t end = base_ + slots_.size() * slot_bytes;
  converted_.resize(end > first_region_ ? (end - first_region_) / kRegionBytes
                                        : 0);
}

void HugeRegions::Take(int slot) {
  if (slots_.empty()) return;
  slots_[static_cast<std::size_t>(slot)] = State::kFilling;
}

void HugeRegions::Fill(int slot) {
  if (slots_.empty()) return;
  slots_[static_cast<std::size_t>(slot)] = State::kFull;
  const auto [begin, end] = RegionsOf(slot);
  for (std::size_t region = begin; region < end; ++region) {
    if (converted_[region] || !IsFull(region)) continue;
    // One attempt: a kernel that has no huge page to give now need not be
    // asked at every block.
    converted_[region] = true;
    (void)::madvise(
        reinterpret_cast<void*>(first_region_ + region * kRegionBytes),
        kRegionBytes, MADV_COLLAPSE);
  }
}

void HugeRegions::Release(int slot) {
  if (slots_.empty()) return;
  slots_[static_cast<std::size_t>(slot)] = State::kFree;
  const auto [begin, end] = RegionsOf(slot);
  for (std::size_t region = begin; region < end; ++region) {
    converted_[region] = false;
  }
}

HugeRegions::Range HugeRegions::RegionsOf(int slot) const {
  const std::uintptr_t begin =
      base_ + static_cast<std::size_t>(slot) * slot_bytes_;
  const std::uintptr_t end = begin + slot_bytes_;
  if (end <= first_region_) return {0, 0};
  return {begin <= first_region_ ? 0 : (begin - first_region_) / kRegionBytes,
          std::min(converted_.size(),
                   (end - first_region_ + kRegionBytes - 1) / kRegionBytes)};
}

bool HugeRegions::IsFull(std::size_t region) const {
  const std::uintptr_t begin = first_region_ + region * kRegionBytes - base_;
  const std::size_t first = begin / slot_bytes_;
  const std::size_t last = (begin + kRegionBytes - 1) / slot_bytes_;
  return std::all_of(slots_.begin() + static_cast<std::ptrdiff_t>(first),
                     slots_.begin() + static_cast<std::ptrdiff_t>(last + 1),
                     [](State state) { return state == State::kFull; });
}

}  // namespace hearth
