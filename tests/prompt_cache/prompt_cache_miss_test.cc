// The persistent prompt cache through the public door: what must not hit, and
// what damage does.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "hearth/engine.h"
#include "testing/launch.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

TEST(PromptCache, ForeignFileIsNeverOverwritten) {
  TempDir dir;
  const std::string path = dir.path() + "/letter.txt";
  std::ofstream(path) << "dear reader";
  EngineOptions options{.model_path = kStories260K};
  options.prompt_cache_file = path;
  const auto answer = Ask(options, Ids(70));
  EXPECT_FALSE(answer.ok()) << "the save says that it was refused";
  EXPECT_EQ(*ReadTextFile(path), "dear reader");
}

// Each field of the key: the same tokens must miss.
TEST(PromptCache, EveryKeyFieldInvalidates) {
  TempDir dir;
  const EngineOptions base = WithDir(dir.path() + "/s");
  MustAsk(base, Ids(130));
  std::vector<EngineOptions> others(4, base);
  others[0].kv_storage = KvStorage::kFp16;
  others[1].kv_storage = KvStorage::kBf16;
  others[2].block_tokens = 32;
  others[3].cache_namespace = "other";
  for (const EngineOptions& other : others) {
    EXPECT_EQ(MustAsk(other, Ids(130)).sync.reused_tokens, 0);
  }
  // And both settings stay usable side by side.
  EXPECT_EQ(MustAsk(base, Ids(130)).sync.reused_tokens, 129);
  EXPECT_EQ(MustAsk(others[0], Ids(130)).sync.reused_tokens, 129);
  // The context limit is not part of it.
  EngineOptions longer = base;
  longer.context_tokens = 400;
  EXPECT_EQ(MustAsk(longer, Ids(130)).sync.reused_tokens, 129);
}

TEST(PromptCache, RopeSettingsAreInTheKey) {
  TempDir dir;
  EngineOptions options = WithDir(dir.path() + "/s");
  options.model_path = kHfLlama;
  std::vector<std::int32_t> ids = Ids(130);
  for (auto& id : ids) id %= 380;
  MustAsk(options, ids);
  EXPECT_EQ(MustAsk(options, ids).sync.reused_tokens, 129);
  options.rope_rounding = RopeRounding::kBf16;
  EXPECT_EQ(MustAsk(options, ids).sync.reused_tokens, 0);
}

// One flipped weight, same size, same modification time: sglang 24758 (R31).
TEST(Identity, R31_OneFlippedWeightIsAMissAndACopyIsAHit) {
  TempDir dir;
  const std::string model = dir.path() + "/m.gguf";
  fs::copy_file(kStories260K, model);
  EngineOptions options = WithDir(dir.path() + "/s");
  options.model_path = model;
  MustAsk(options, Ids(130));

  const std::string copy = dir.path() + "/renamed-copy.bin";
  fs::copy_file(model, copy);
  EngineOptions other = options;
  other.model_path = copy;
  EXPECT_EQ(MustAsk(other, Ids(130)).sync.reused_tokens, 129);
  fs::rename(copy, dir.path() + "/again.gguf");
  other.model_path = dir.path() + "/again.gguf";
  EXPECT_EQ(MustAsk(other, Ids(130)).sync.reused_tokens, 129);

  struct stat before;
  ASSERT_EQ(::stat(model.c_str(), &before), 0);
  {
    std::fstream file(model, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-1001, std::ios::end);
    const char byte = static_cast<char>(file.get() ^ 1);
    file.seekp(-1001, std::ios::end);
    file.put(byte);
  }
  const struct timespec times[2] = {before.st_atim, before.st_mtim};
  ASSERT_EQ(::utimensat(AT_FDCWD, model.c_str(), times, 0), 0);
  struct stat after;
  ASSERT_EQ(::stat(model.c_str(), &after), 0);
  ASSERT_EQ(after.st_size, before.st_size);
  ASSERT_EQ(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
  const Answer flipped = MustAsk(options, Ids(130));
  EXPECT_EQ(flipped.sync.reused_tokens, 0);
  EXPECT_FALSE(flipped.sync.miss_reason.empty());
}

// Flips and truncations of every file kind through the whole engine; the
// store's own tests do it for every byte.
TEST(Damage, AnswerEqualsTheOneWithoutAStore) {
  TempDir dir;
  const EngineOptions options = WithDir(dir.path() + "/s");
  const std::vector<std::int32_t> ids = Ids(150);
  const Answer want = MustAsk(options, ids);
  const std::string pristine = dir.path() + "/pristine";
  fs::copy(options.prompt_cache_dir, pristine, fs::copy_options::recursive);
  for (const char* suffix : {".kv", ".kvcache"}) {
    const std::string victim = FilesBelow(pristine, suffix).at(0);
    const std::string relative = fs::relative(victim, pristine).string();
    const std::size_t size = fs::file_size(victim);
    for (std::size_t i = 0; i < 24; ++i) {
      fs::remove_all(options.prompt_cache_dir);
      fs::copy(pristine, options.prompt_cache_dir, fs::copy_options::recursive);
      const std::string path = options.prompt_cache_dir + "/" + relative;
      const std::size_t at = i < 12 ? i * 13 : (i - 12) * size / 12;
      if (i % 3 == 2) {
        fs::resize_file(path, at);
      } else {
        FlipByte(path, at);
      }
      const Answer got = MustAsk(options, ids);
      ASSERT_EQ(got.text, want.text) << relative << " byte " << at;
      if (got.sync.reused_tokens < 149) {
        EXPECT_FALSE(got.sync.miss_reason.empty());
      }
      // The damage was set aside or repaired: the next launch is whole again.
      EXPECT_EQ(MustAsk(options, ids).sync.reused_tokens, 149);
    }
  }
}

// The compiled tokenizer beside the blocks: used when whole, made anew when
// not, and never believed when its source changed.
TEST(PromptCache, TokenizerIsKeptCompiledAndRepaired) {
  TempDir dir;
  const std::string model = dir.path() + "/model";
  fs::copy(kHfLlama, model, fs::copy_options::recursive);
  EngineOptions options = WithDir(dir.path() + "/s");
  options.model_path = model;
  const auto encode = [&] {
    auto engine = Engine::Open(options);
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    return *(*engine)->codec().Encode("The cat and the dog <|eos|>", true);
  };
  const auto plain = *(*Engine::Open({.model_path = model}))
                          ->codec()
                          .Encode("The cat and the dog <|eos|>", true);
  EXPECT_EQ(encode(), plain);
  const auto kept = FilesBelow(options.prompt_cache_dir, ".tokenizer");
  ASSERT_EQ(kept.size(), 1u);
  EXPECT_EQ(encode(), plain);
  FlipByte(kept[0], fs::file_size(kept[0]) / 2);
  EXPECT_EQ(encode(), plain);
  fs::resize_file(kept[0], 100);
  EXPECT_EQ(encode(), plain);
  EXPECT_GT(fs::file_size(kept[0]), 100u) << "made anew";
  // An edited tokenizer is another source.
  std::string json = *ReadTextFile(model + "/tokenizer.json");
  for (std::size_t at; (at = json.find("<|eos|>")) != std::string::npos;) {
    json.replace(at, 7, "<|EOS|>");
  }
  ASSERT_TRUE(
      WriteFileAtomically(model + "/tokenizer.json", AsBytes(json)).ok());
  EXPECT_NE(encode(), plain);
}

}  // namespace
}  // namespace hearth
