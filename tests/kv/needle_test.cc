// A fact in the first block, asked for at the end, by a model that can find it
// (tests/data/models/recall): with every KV format, cold and after a restore
// from disk.
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "hearth/engine.h"
#include "hearth_test_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

const std::string kRecall = std::string(HEARTH_TEST_DATA "/models/recall");

struct Needle {
  std::string prompt, answer;
};

// About 480 bytes: seven blocks of 64 between the fact and the question.
Needle MakeNeedle(unsigned seed) {
  std::mt19937 rng(seed);
  const auto letter = [&] { return static_cast<char>('a' + rng() % 26); };
  const std::string name{letter(), letter()};
  const auto words = [&](std::size_t until, std::string& text) {
    while (text.size() < until) {
      for (auto n = 2 + rng() % 6; n > 0; --n) text += letter();
      text += ' ';
    }
  };
  const std::string number = std::to_string(100 + rng() % 900);
  Needle needle;
  words(20, needle.prompt);
  needle.prompt += "\n" + name + "=" + number + ";\n";
  words(470, needle.prompt);
  needle.prompt += "\n?" + name + "=";
  needle.answer = number + ";";
  return needle;
}

std::string Ask(Engine& engine, const std::string& prompt, int& reused) {
  auto session = std::move(*engine.NewSession());
  const auto ids = engine.codec().Encode(prompt, true);
  EXPECT_TRUE(ids.ok());
  const auto synced = session->Sync(*ids, nullptr);
  EXPECT_TRUE(synced.ok()) << synced.error().message;
  if (!synced.ok()) return "";
  reused = synced->reused_tokens;
  GenerateOptions options;
  options.n_tokens_max = 4;
  options.sampling.temperature = 0;
  const auto report = session->Generate(options, nullptr);
  EXPECT_TRUE(report.ok());
  return report.ok() ? report->text : "";
}

struct Storage {
  KvStorage keys, values;
  int n_right_min;  // of 10
};

class NeedleInEveryFormat : public ::testing::TestWithParam<Storage> {};

TEST_P(NeedleInEveryFormat, IsFoundColdAndRestored) {
  constexpr int kNeedles = 10;
  TempDir dir;
  EngineOptions options{.model_path = kRecall, .n_threads = 1};
  options.kv_keys = GetParam().keys;
  options.kv_values = GetParam().values;
  options.prompt_cache_dir = dir.path() + "/store";
  options.cache_always = true;
  int n_right = 0;
  std::vector<std::string> cold(kNeedles);
  {
    auto engine = Engine::Open(options);
    ASSERT_TRUE(engine.ok()) << engine.error().message;
    for (unsigned i = 0; i < kNeedles; ++i) {
      const Needle needle = MakeNeedle(i);
      int reused = 0;
      cold[i] = Ask(**engine, needle.prompt, reused);
      EXPECT_EQ(reused, 0);
      n_right += cold[i] == needle.answer;
    }
    ASSERT_TRUE((*engine)->DrainSaves(0).ok());
  }
  RecordProperty("right", n_right);
  EXPECT_GE(n_right, GetParam().n_right_min);
  auto engine = Engine::Open(options);
  ASSERT_TRUE(engine.ok());
  for (unsigned i = 0; i < kNeedles; ++i) {
    const Needle needle = MakeNeedle(i);
    int reused = 0;
    EXPECT_EQ(Ask(**engine, needle.prompt, reused), cold[i]) << i;
    EXPECT_GE(reused, 448) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, NeedleInEveryFormat,
    ::testing::Values(Storage{KvStorage::kFp32, KvStorage::kFp32, 10},
                      Storage{KvStorage::kFp16, KvStorage::kFp16, 10},
                      Storage{KvStorage::kBf16, KvStorage::kBf16, 10},
                      Storage{KvStorage::kInt8, KvStorage::kInt8, 10},
                      Storage{KvStorage::kInt4, KvStorage::kInt4, 10},
                      Storage{KvStorage::kInt8, KvStorage::kInt4, 10}),
    [](const auto& param_info) {
      return std::string(NameOf(param_info.param.keys)) + "_" +
             std::string(NameOf(param_info.param.values));
    });

// What a window has let go of is not found, which shows that it is gone; what
// lies in the window is.
TEST(Needle, AWindowForgetsWhatLiesBeforeIt) {
  EngineOptions options{.model_path = kRecall, .n_threads = 1};
  options.streaming_sink = 4;
  options.streaming_window = 200;
  auto engine = Engine::Open(options);
  ASSERT_TRUE(engine.ok()) << engine.error().message;
  int n_far = 0;
  int n_near = 0;
  for (unsigned i = 0; i < 10; ++i) {
    const Needle needle = MakeNeedle(i);
    int reused = 0;
    n_far += Ask(**engine, needle.prompt, reused) == needle.answer;
    const std::string question = needle.prompt.substr(needle.prompt.size() - 5);
    const std::string fact =
        "\n" + question.substr(2, 2) + "=" + needle.answer + "\n";
    std::string near = needle.prompt;
    near.insert(needle.prompt.size() - 5 - 150, fact);
    n_near += Ask(**engine, near, reused) == needle.answer;
  }
  EXPECT_LE(n_far, 1);
  EXPECT_GE(n_near, 8);
}

}  // namespace
}  // namespace hearth
