// What the program says and understands, apart from models.
#include <gtest/gtest.h>
#include <stdlib.h>

#include "cli/chat/chat_command.h"
#include "cli/options/cache_location.h"
#include "cli/options/foreign_words.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/table.h"

namespace hearth::cli {
namespace {

TEST(CliProgress, ABarFitsTheTerminalHoweverNarrow) {
  for (int columns = 1; columns <= 200; ++columns) {
    const std::string text =
        ProgressText("prefill", Unit::kTokens, 1234, 56789, 321.0, columns);
    EXPECT_LT(static_cast<int>(text.size()), std::max(columns, 2)) << columns;
  }
  EXPECT_EQ(ProgressText("prefill", Unit::kTokens, 50, 100, 25, 80),
            "prefill [###############...............] 50/100  25 tokens/s  2 s "
            "left");
  EXPECT_EQ(
      ProgressText("quantize", Unit::kBytes, 1'000'000, 4'000'000, 1e6, 0),
      "quantize 1.0 MB of 4.0 MB, 1.0 MB/s, 3 s left");
  EXPECT_EQ(ProgressText("bench", Unit::kRuns, 0, 10, 0, 12), "bench 0%");
}

TEST(CliTable, NamesFromFilesAreEscapedInTheirColumn) {
  EXPECT_EQ(FormatTable({{"NAME", "N"}, {"a\x1b", "12"}}),
            "NAME    N\na\\x1b  12\n");
}

TEST(CliForeignWords, OptionsOfOtherProgramsAreRefusedWithTheirAnswer) {
  EXPECT_NE(ForeignWord({"sample", "m", "-ngl", "99"}).find("CPU"),
            std::string::npos);
  EXPECT_NE(ForeignWord({"sample", "--n-gpu-layers=9"}).find("--n-gpu-layers:"),
            std::string::npos);
  EXPECT_NE(ForeignWord({"sample", "-ctk", "q8_0"}).find("--kv-quantize-keys"),
            std::string::npos);
  EXPECT_EQ(ForeignWord({"sample", "-p", "-ngl"}), "");
  EXPECT_EQ(ForeignWord({"sample", "--repeat-penalty", "1.1"}), "");
  EXPECT_NE(ForeignWord({"sample", "--mirostat", "2"}), "");
  EXPECT_EQ(ForeignWord({"sample", "m", "-n", "5"}), "");
}

TEST(CliCacheLocation, FollowsTheEnvironmentInItsOrder) {
  ::setenv("HOME", "/h", 1);
  ::setenv("XDG_CACHE_HOME", "/x", 1);
  ::setenv("HEARTH_CACHE_DIR", "/c", 1);
  EXPECT_EQ(DefaultCacheDirectory(), "/c");
  ::setenv("HEARTH_CACHE_DIR", "", 1);
  EXPECT_EQ(DefaultCacheDirectory(), "/x/hearth");
  ::setenv("XDG_CACHE_HOME", "relative", 1);
  EXPECT_EQ(DefaultCacheDirectory(), "/h/.cache/hearth");
  ::unsetenv("HOME");
  EXPECT_EQ(DefaultCacheDirectory(), "");
}

TEST(CliCacheLocation, TheBudgetIsATenthOfTheFreeDiskAndNeverNoLimit) {
  EXPECT_EQ(CacheBudgetFor(50'000'000'000), 5'000'000'000u);
  EXPECT_EQ(CacheBudgetFor(5'000'000'000'000), 20'000'000'000u);
  EXPECT_EQ(CacheBudgetFor(0), 1u) << "0 would be no limit";
  EXPECT_GT(DefaultCacheBudget("/tmp/not/there/yet"), 0u);
}

TEST(CliChatCommand, UnknownCommandsAreRefusedWithTheNearest) {
  const auto typo = ParseChatCommand("/sav notes");
  ASSERT_FALSE(typo.ok());
  EXPECT_NE(typo.error().message.find("/save"), std::string::npos);
  EXPECT_EQ(ParseChatCommand("/save  a b ")->rest, "a b");
  EXPECT_EQ(ParseChatCommand("/regenerate")->verb, ChatVerb::kRetry);
  for (const std::string message :
       {"hello", "/", "/ 2", "//undo", "/etc/fstab is what?"}) {
    EXPECT_EQ(ParseChatCommand(message)->verb, ChatVerb::kNone) << message;
  }
  EXPECT_EQ(MessageOf("//undo"), "/undo");
}

TEST(CliChatCommand, SettingsAreCheckedAndShown) {
  ChatSettings settings;
  ASSERT_TRUE(SetChat("temperature 0.25", settings).ok());
  ASSERT_TRUE(SetChat("top_k=7", settings).ok());
  ASSERT_TRUE(SetChat("thinking off", settings).ok());
  ASSERT_TRUE(SetChat("tokens 12", settings).ok());
  EXPECT_EQ(settings.sampling.temperature, 0.25);
  EXPECT_EQ(settings.sampling.top_k, 7);
  EXPECT_EQ(settings.thinking, false);
  EXPECT_NE(SetChat("", settings)->find("tokens 12"), std::string::npos);
  ASSERT_TRUE(SetChat("repeat-penalty 1.1", settings).ok());
  EXPECT_EQ(settings.sampling.repeat_penalty, 1.1);
  ASSERT_TRUE(SetChat("logit-bias 5+1.5,7-inf", settings).ok());
  EXPECT_EQ(settings.sampling.logit_bias.at(5), 1.5);
  EXPECT_EQ(settings.sampling.logit_bias.size(), 2u);
  EXPECT_NE(SetChat("", settings)->find("logit-bias 5+1.50,7-inf"),
            std::string::npos);
  ASSERT_TRUE(SetChat("logit-bias none", settings).ok());
  EXPECT_TRUE(settings.sampling.logit_bias.empty());
  ASSERT_TRUE(SetChat("dry-sequence-breaker \\n\\n", settings).ok());
  EXPECT_EQ(settings.sampling.dry_sequence_breakers,
            std::vector<std::string>{"\n\n"});
  for (const std::string wrong :
       {"temperature -1", "top-p 2", "seed -1", "thinking maybe", "top-k",
        "tokens -2", "repeat-penalty 0", "repeat-last-n -2", "logit-bias 5",
        "logit-bias x+1", "logit-bias 5+", "dry-base 0.5", "xtc-threshold 2",
        "dry-sequence-breaker"}) {
    EXPECT_FALSE(SetChat(wrong, settings).ok()) << wrong;
  }
  EXPECT_NE(SetChat("temprature 1", settings)
                .error()
                .message.find("did you mean temperature"),
            std::string::npos);
}

}  // namespace
}  // namespace hearth::cli
