#include "serve/http/outbox.h"

#include <gtest/gtest.h>

namespace hearth::serve {
namespace {

TEST(Outbox, WhatIsAddedMeanwhileGoesOutNext) {
  Outbox box(100);
  EXPECT_FALSE(box.Begin());
  box.Add("abc");
  ASSERT_TRUE(box.Begin());
  box.Add("de");
  EXPECT_FALSE(box.Begin()) << "one write at a time";
  box.Took(2);
  EXPECT_EQ(box.left(), "c");
  box.Took(1);
  EXPECT_FALSE(box.writes());
  EXPECT_FALSE(box.empty());
  ASSERT_TRUE(box.Begin());
  EXPECT_EQ(box.left(), "de");
  box.Took(2);
  EXPECT_TRUE(box.empty());
}

TEST(Outbox, IsFullUntilThreeQuartersAreGone) {
  Outbox box(100);
  box.Add(std::string(100, 'x'));
  EXPECT_FALSE(box.Turned().has_value());
  box.Add("y");
  EXPECT_EQ(box.Turned(), true);
  EXPECT_FALSE(box.Turned().has_value()) << "said once";
  ASSERT_TRUE(box.Begin());
  box.Took(75);
  EXPECT_FALSE(box.Turned().has_value());
  box.Took(1);
  EXPECT_EQ(box.Turned(), false);
}

}  // namespace
}  // namespace hearth::serve
