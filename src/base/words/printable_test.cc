#include "base/words/printable.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

TEST(Printable, NothingThatATerminalObeysComesThrough) {
  EXPECT_EQ(Printable("plain text, \xc3\xa9"), "plain text, \xc3\xa9");
  EXPECT_EQ(Printable("\x1b[31mred\r\n"), "\\x1b[31mred\\x0d\\x0a");
  EXPECT_EQ(Printable("a\xc2\x9b"
                      "b\x7f"),
            "a\\x9bb\\x7f");
  EXPECT_EQ(Printable("\xc2"), "\xc2");
}

}  // namespace
}  // namespace hearth
