// The table that `hearth inspect` prints is true: whatever it promises is done
// with the model at hand, whatever it denies is refused with that reason.
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "hearth/convert.h"
#include "hearth/engine.h"
#include "hearth_test_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

std::vector<std::int32_t> Prompt(const ModelInfo& info, int n) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back((i * 7 + 3) % info.vocab_size);
  return ids;
}

// Opens, prefills past a block, forks, cuts, stores, and answers.
Result<void> Use(EngineOptions options, const std::string& store) {
  options.n_threads = 1;
  options.block_tokens = 16;
  options.prompt_cache_dir = store;
  options.cache_always = true;
  HEARTH_ASSIGN(auto engine, Engine::Open(options));
  HEARTH_ASSIGN(auto session, engine->NewSession());
  const int n = std::min(40, engine->info().context_length - 8);
  const auto prompt = Prompt(engine->info(), n);
  GenerateOptions generate{.n_tokens_max = 4, .ignore_eos = true};
  HEARTH_TRY(session->Sync(prompt, nullptr));
  HEARTH_ASSIGN(auto fork, session->Fork());
  HEARTH_ASSIGN(const auto first, session->Generate(generate, nullptr));
  EXPECT_EQ(first.token_ids.size(), 4u);
  session->Persist();
  HEARTH_TRY(fork->Rewind(n - 5));
  EXPECT_EQ(fork->tokens().size(), static_cast<std::size_t>(n - 5));
  HEARTH_TRY(fork->Sync(prompt, nullptr));
  HEARTH_TRY(engine->DrainSaves(0));
  HEARTH_ASSIGN(auto again, Engine::Open(options));
  HEARTH_ASSIGN(auto restored, again->NewSession());
  HEARTH_ASSIGN(const SyncReport report, restored->Sync(prompt, nullptr));
  EXPECT_EQ(report.reuse_tier, "disk");
  return {};
}

EngineOptions OptionsFor(const std::string& capability, const ModelInfo& info) {
  EngineOptions options;
  if (capability.rfind("kv ", 0) == 0) {
    options.kv_storage = *KvStorageNamed(capability.substr(3));
  } else if (capability == "sinks + window") {
    options.streaming_sink = 2;
    options.streaming_window = std::min(24, info.context_length - 2);
  } else if (capability == "speculation") {
    options.draft = "prompt-lookup";
  }
  return options;
}

void Walk(const std::string& path) {
  SCOPED_TRACE(path);
  const auto info = InspectModel(path);
  ASSERT_TRUE(info.ok()) << info.error().message;
  std::map<std::string, int> seen;
  for (const Capability& c : info->capabilities) {
    SCOPED_TRACE(c.name);
    ++seen[c.name];
    TempDir dir;
    EngineOptions options = OptionsFor(c.name, *info);
    options.model_path = path;
    const auto used = Use(options, dir.path() + "/store");
    EXPECT_EQ(used.ok(), c.supported)
        << (used.ok() ? "works" : used.error().message);
    if (!used.ok()) {
      EXPECT_EQ(used.error().message, c.note);
    }
  }
  for (const char* name :
       {"kv fp32", "kv int8", "kv int4", "native window", "sinks + window",
        "shared KV", "fork, rewind, persist", "speculation"}) {
    EXPECT_EQ(seen[name], 1) << name;
  }
}

TEST(Capabilities, HoldForModelsOfEveryKind) {
  const std::string models = HEARTH_TEST_DATA "/models";
  Walk("");
  Walk(models + "/stories260K.gguf");
  // Windows in some layers, and in all; no tokenizers of their own.
  for (const char* name : {"gemma3", "mistral"}) {
    TempDir dir;
    std::filesystem::copy(models + "/hf/" + name, dir.path(),
                          std::filesystem::copy_options::recursive);
    std::filesystem::copy(models + "/recall/tokenizer.json",
                          dir.path() + "/tokenizer.json",
                          std::filesystem::copy_options::skip_existing);
    Walk(dir.path());
  }
}

TEST(Capabilities, SharedKvIsNamed) {
  TempDir dir;
  const std::string path = dir.path() + "/yoco.tinygpt";
  ASSERT_TRUE(InitModel("tiny", path, 0, true, 1).ok());
  Walk(path);
  const auto info = InspectModel(path);
  const auto plain_path = dir.path() + "/own.tinygpt";
  ASSERT_TRUE(InitModel("tiny", plain_path, 0, false, 1).ok());
  const auto plain = InspectModel(plain_path);
  EXPECT_EQ(2 * info->kv_bytes_per_token[0].second,
            plain->kv_bytes_per_token[0].second);
}

}  // namespace
}  // namespace hearth
