#include "engine/session/answer/stop_texts.h"

#include <gtest/gtest.h>

namespace hearth {
namespace {

// What is shown of `text` in pieces of `n` bytes, and what ended it.
std::pair<std::string, std::string> Show(const std::vector<std::string>& stops,
                                         const std::string& text,
                                         std::size_t n) {
  StopTexts texts(stops);
  std::string shown;
  for (std::size_t at = 0; at < text.size() && texts.found().empty(); at += n) {
    shown += texts.Push(text.substr(at, n));
  }
  shown += texts.Flush();
  return {shown, texts.found()};
}

TEST(StopTexts, PiecesDoNotMatter) {
  const std::vector<std::string> stops = {"\nUser:", "stop", "top here", "st"};
  for (const char* text :
       {"no end", "a\nUser: b", "please stop here", "s t op\nUse", "xxtop here",
        "\n\nUser:\nUser:", "sst"}) {
    const auto whole = Show(stops, text, 100);
    for (std::size_t n = 1; n < 6; ++n) {
      EXPECT_EQ(Show(stops, text, n), whole) << text << " by " << n;
    }
  }
}

TEST(StopTexts, TheFirstToBeCompleteCounts) {
  using Shown = std::pair<std::string, std::string>;
  EXPECT_EQ(Show({"abcde", "bcd"}, "xabcdef", 100), (Shown{"xa", "bcd"}));
  EXPECT_EQ(Show({"cd", "bcd"}, "xabcdef", 100), (Shown{"xa", "bcd"}))
      << "of two that end together the longer";
  EXPECT_EQ(Show({}, "all", 1), (Shown{"all", ""}));
  EXPECT_EQ(Show({"ab"}, "a", 1), (Shown{"a", ""}))
      << "what only began is shown at the end";
}

}  // namespace
}  // namespace hearth
