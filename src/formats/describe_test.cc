#include "formats/describe.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Describe, QuotedTextIsOneShortPrintableLine) {
  EXPECT_EQ(Quoted("a\n\xff"), "\"a\\x0a\\xff\"");
  EXPECT_EQ(Quoted(std::string(81, 'x')),
            "\"" + std::string(80, 'x') + "\"...");
}

TEST(Describe, ShapesAreListed) {
  const std::uint64_t shape[] = {4, 8};
  EXPECT_EQ(ShapeText(shape), "[4, 8]");
  EXPECT_EQ(ShapeText({}), "[]");
}

TEST(Describe, NamesForFilesAreSafe) {
  EXPECT_EQ(NameForFiles("Llama 3.2/1B"), "Llama-3.2-1B");
  EXPECT_EQ(NameForFiles("../../etc"), "etc");
  EXPECT_EQ(NameForFiles("-rf"), "rf");
  EXPECT_EQ(NameForFiles("..."), "");
  EXPECT_EQ(NameForFiles(std::string(100, 'x')).size(), 64u);
}

}  // namespace
}  // namespace hearth
