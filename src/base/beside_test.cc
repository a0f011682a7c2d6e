#include "base/beside.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>

namespace hearth {
namespace {

TEST(Beside, GivesWhatTheWorkGave) {
  Beside<std::unique_ptr<int>> work([] { return std::make_unique<int>(7); });
  EXPECT_EQ(*work.Get(), 7);
}

TEST(Beside, WhatTheWorkThrowsIsThrownWhereItIsAskedFor) {
  Beside<int> work([]() -> int { throw std::bad_alloc(); });
  EXPECT_THROW(work.Get(), std::bad_alloc);
}

TEST(Beside, EndsItsWorkThoughNobodyAsks) {
  int done = 0;
  {
    const Beside<int> work([&] { return done = 1; });
  }
  EXPECT_EQ(done, 1);
}

}  // namespace
}  // namespace hearth
