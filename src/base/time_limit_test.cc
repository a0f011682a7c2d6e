#include "base/time_limit.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

using std::chrono::seconds;

TEST(TimeLimit, WhatOneCallTookTheNextDoesNotHave) {
  const TimeLimit::Clock::time_point start{};
  const TimeLimit limit(10, start);
  EXPECT_EQ(limit.Left(start), 10);
  EXPECT_EQ(limit.Left(start + seconds(4)), 6);
  EXPECT_GT(limit.Left(start + seconds(10)), 0) << "0 would be no limit";
  EXPECT_LE(limit.Left(start + seconds(60)), 0.001);
}

TEST(TimeLimit, NoneStaysNone) {
  const TimeLimit::Clock::time_point start{};
  EXPECT_EQ(TimeLimit(0, start).Left(start + seconds(60)), 0);
}

}  // namespace
}  // namespace hearth
