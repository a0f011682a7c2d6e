// Sliding-window models and the prompt cache: what is restored can be extended
// and rewound as if it had been computed.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "hearth/engine.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

constexpr int kWindow = 24;  // of the test models

std::vector<std::int32_t> Ids(int n) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back(i * 7919 % 384);
  return ids;
}

struct Answer {
  SyncReport sync;
  std::vector<std::int32_t> ids;
};

Answer Ask(const EngineOptions& options,
           const std::vector<std::int32_t>& prompt) {
  const auto engine = Engine::Open(options).value();
  const auto session = engine->NewSession().value();
  Answer answer;
  answer.sync = session->Sync(prompt, nullptr).value();
  answer.ids = session
                   ->Generate({.n_tokens_max = 6,
                               .ignore_eos = true,
                               .sampling = {.temperature = 0}},
                              nullptr)
                   .value()
                   .token_ids;
  EXPECT_TRUE(engine->DrainSaves().ok());
  return answer;
}

class WindowRestore : public testing::TestWithParam<const char*> {};

// R3, R28: round trips around the window. R50: a request that is repeated
// computes one token. R4: so does one that is restored.
TEST_P(WindowRestore, R3_R28_R50_WhatIsRestoredIsWhatWasComputed) {
  TempDir dir;
  const std::string model = dir.path() + "/model";
  fs::copy(kTestData + "/models/hf/" + GetParam(), model);
  // They come without one; ids alone matter here.
  fs::copy(kHfLlama + "/tokenizer.json", model + "/tokenizer.json");
  for (const int n : {kWindow - 1, kWindow, kWindow + 1, 3 * kWindow, 150}) {
    EngineOptions options{.model_path = model, .n_threads = 1};
    options.block_tokens = 16;
    options.cache_always = true;
    const Answer plain = Ask(options, Ids(n));
    const Answer longer = Ask(options, Ids(n + 40));
    options.prompt_cache_dir = dir.path() + "/" + std::to_string(n);
    EXPECT_EQ(Ask(options, Ids(n)).ids, plain.ids);
    const Answer again = Ask(options, Ids(n));
    EXPECT_EQ(again.ids, plain.ids) << n;
    EXPECT_EQ(again.sync.reused_tokens, n - 1);
    const Answer extended = Ask(options, Ids(n + 40));
    EXPECT_EQ(extended.ids, longer.ids) << n;
    EXPECT_EQ(extended.sync.reused_tokens, n);
    // R2: and rewound, past the window.
    EXPECT_EQ(Ask(options, Ids(n)).ids, plain.ids) << n;
  }
}

INSTANTIATE_TEST_SUITE_P(All, WindowRestore,
                         testing::Values("mistral", "gemma3", "gpt_oss"));

}  // namespace
}  // namespace hearth
