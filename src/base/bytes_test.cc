#include "base/bytes.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(ByteReader, StopsAtTheEndAndStaysStopped) {
  std::vector<std::byte> bytes;
  AppendLe(bytes, std::uint32_t{0x04030201});
  AppendLe(bytes, std::uint16_t{7});
  ByteReader reader(bytes);
  EXPECT_EQ(reader.Read<std::uint32_t>(), 0x04030201u);
  EXPECT_EQ(reader.Read<std::uint32_t>(), 0u);
  EXPECT_FALSE(reader.ok());
  EXPECT_EQ(reader.position(), 4u);
  EXPECT_EQ(reader.Read<std::uint16_t>(), 0u) << "an error is sticky";
}

TEST(ByteReader, HugeLengthIsRefusedNotWrapped) {
  std::vector<std::byte> bytes(8);
  ByteReader reader(bytes);
  (void)reader.Read<std::uint32_t>();
  EXPECT_TRUE(reader.Take(~std::uint64_t{0}).empty());
  EXPECT_FALSE(reader.ok());
}

TEST(CheckedArithmetic, OverflowGivesNothing) {
  EXPECT_EQ(CheckedAdd(2, 3), 5u);
  EXPECT_EQ(CheckedAdd(~std::uint64_t{0}, 1), std::nullopt);
  EXPECT_EQ(CheckedMul(std::uint64_t{1} << 33, std::uint64_t{1} << 33),
            std::nullopt);
}

}  // namespace
}  // namespace hearth
