#include "cache/pool/huge_regions.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace hearth {
namespace {

constexpr std::size_t kSlotBytes = 96 << 10;  // does not divide a region
constexpr int kSlots = 100;

class HugeRegionsTest : public ::testing::Test {
 protected:
  HugeRegionsTest() {
    void* p = ::mmap(nullptr, kSlotBytes * kSlots, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    EXPECT_NE(p, MAP_FAILED);
    base_ = static_cast<std::byte*>(p);
    regions_ = HugeRegions(base_, kSlotBytes, kSlots);
  }
  ~HugeRegionsTest() override { ::munmap(base_, kSlotBytes * kSlots); }

  std::byte* Slot(int slot) {
    return base_ + static_cast<std::size_t>(slot) * kSlotBytes;
  }
  void Fill(int slot) {
    regions_.Take(slot);
    std::memset(Slot(slot), slot + 1, kSlotBytes);
    regions_.Fill(slot);
  }
  bool Holds(int slot, int value) {
    return std::all_of(Slot(slot), Slot(slot) + kSlotBytes, [&](std::byte b) {
      return b == static_cast<std::byte>(value);
    });
  }
  void Release(int slot) {
    regions_.Release(slot);
    ::madvise(Slot(slot), kSlotBytes, MADV_DONTNEED);
  }
  long ResidentPages(int slot) {
    std::vector<unsigned char> pages(
        kSlotBytes / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
    EXPECT_EQ(::mincore(Slot(slot), kSlotBytes, pages.data()), 0);
    return std::count_if(pages.begin(), pages.end(),
                         [](unsigned char page) { return (page & 1) != 0; });
  }

  std::byte* base_ = nullptr;
  HugeRegions regions_;
};

TEST_F(HugeRegionsTest, WhatIsInTheBlocksStays) {
  for (int slot = 0; slot < kSlots; ++slot) Fill(slot);
  for (int slot = 0; slot < kSlots; ++slot) {
    EXPECT_TRUE(Holds(slot, slot + 1)) << slot;
  }
}

TEST_F(HugeRegionsTest, MemoryOfFreeBlocksIsNotTakenAgain) {
  for (int slot = 0; slot < 50; ++slot) Fill(slot);
  for (int slot = 3; slot < 50; slot += 7) Release(slot);
  for (int slot = 50; slot < kSlots; ++slot) Fill(slot);
  for (int slot = 0; slot < kSlots; ++slot) {
    if (slot < 50 && slot % 7 == 3) {
      EXPECT_EQ(ResidentPages(slot), 0) << slot;
    } else {
      EXPECT_TRUE(Holds(slot, slot + 1)) << slot;
    }
  }
  // Taken again, their regions are whole again.
  for (int slot = 3; slot < 50; slot += 7) Fill(slot);
  for (int slot = 0; slot < kSlots; ++slot) {
    EXPECT_TRUE(Holds(slot, slot + 1)) << slot;
  }
}

TEST(HugeRegions, WithoutSlotsItDoesNothing) {
  HugeRegions none;
  none.Take(3);
  none.Fill(3);
  none.Release(3);
}

}  // namespace
}  // namespace hearth
