// The persistent prompt cache through the public door: what hits, what must
// not, and what damage does.
#include <gtest/gtest.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/file.h"
#include "hearth/engine.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

struct Answer {
  SyncReport sync;
  std::string text;
};

// A new process in miniature: engine, session, prompt, a few greedy tokens.
Result<Answer> Ask(const EngineOptions& options,
                   const std::vector<std::int32_t>& ids, int n_tokens = 8) {
  HEARTH_ASSIGN(auto engine, Engine::Open(options));
  HEARTH_ASSIGN(auto session, engine->NewSession());
  Answer answer;
  HEARTH_ASSIGN(answer.sync, session->Sync(ids, nullptr));
  HEARTH_ASSIGN(auto report,
                session->Generate({.n_tokens_max = n_tokens,
                                   .ignore_eos = true,
                                   .sampling = {.temperature = 0}},
                                  nullptr));
  answer.text = report.text;
  HEARTH_TRY(engine->DrainSaves());
  return answer;
}

Answer MustAsk(const EngineOptions& options,
               const std::vector<std::int32_t>& ids) {
  auto answer = Ask(options, ids);
  EXPECT_TRUE(answer.ok()) << answer.error().message;
  return answer.ok() ? *answer : Answer{};
}

std::vector<std::int32_t> Ids(int n, int salt = 0) {
  std::vector<std::int32_t> ids;
  for (int i = 0; i < n; ++i) ids.push_back(3 + (i * 37 + i * i * 11 + salt) % 500);
  return ids;
}

EngineOptions WithDir(const std::string& dir) {
  return {.model_path = kStories260K, .n_threads = 1, .prompt_cache_dir = dir};
}

std::vector<std::string> FilesBelow(const std::string& dir,
                                    const std::string& suffix) {
  std::vector<std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(dir)) {
    if (entry.is_regular_file() && entry.path().string().ends_with(suffix)) {
      files.push_back(entry.path().string());
    }
  }
  return files;
}

void FlipByte(const std::string& path, std::size_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const char byte = static_cast<char>(file.get() ^ 0x20);
  file.seekp(static_cast<std::streamoff>(at));
  file.put(byte);
}

TEST(PromptCache, SecondLaunchComputesOneToken) {
  TempDir dir;
  for (const int n : {1, 2, 63, 64, 65, 128, 200}) {
    const EngineOptions options = WithDir(dir.path() + "/" + std::to_string(n));
    const Answer cold = MustAsk(options, Ids(n));
    EXPECT_EQ(cold.sync.reused_tokens, 0);
    EXPECT_FALSE(cold.sync.miss_reason.empty());
    const Answer hot = MustAsk(options, Ids(n));
    EXPECT_EQ(hot.sync.reused_tokens, n - 1) << hot.sync.miss_reason;
    EXPECT_EQ(hot.sync.reuse_tier, n == 1 ? "none" : "disk");
    EXPECT_EQ(hot.text, cold.text);
  }
}

TEST(PromptCache, ShorterAndLongerPromptsReuseWhatTheyShare) {
  TempDir dir;
  const EngineOptions options = WithDir(dir.path() + "/s");
  MustAsk(options, Ids(200));
  for (const int n : {197, 198, 199, 201, 230, 300}) {
    const EngineOptions no_cache{.model_path = kStories260K};
    const Answer want = MustAsk(no_cache, Ids(n));
    const Answer got = MustAsk(options, Ids(n));
    EXPECT_EQ(got.text, want.text);
    // 200 = 3 blocks and a tail of 8; a longer prompt has the tail too.
    EXPECT_GE(got.sync.reused_tokens, n > 200 ? 200 : 192);
  }
}

TEST(PromptCache, EditingTheLastWordCostsAtMostABlockAndTheTail) {
  TempDir dir;
  const EngineOptions options = WithDir(dir.path() + "/s");
  std::vector<std::int32_t> ids = Ids(500);
  MustAsk(options, ids);
  ids[497] ^= 1;
  const Answer edited = MustAsk(options, ids);
  EXPECT_GE(edited.sync.reused_tokens, 500 - 64 - 500 % 64);
  EXPECT_EQ(edited.text, MustAsk({.model_path = kStories260K}, ids).text);
}

TEST(PromptCache, ACancelledPrefillKeepsWhatItComputed) {
  TempDir dir;
  const std::vector<std::int32_t> ids = Ids(500);
  for (const bool to_file : {false, true}) {
    EngineOptions options{.model_path = kStories260K, .n_threads = 1};
    (to_file ? options.prompt_cache_file : options.prompt_cache_dir) =
        dir.path() + (to_file ? "/one.kvcache" : "/s");
    {
      const auto engine = Engine::Open(options).value();
      const auto session = engine->NewSession().value();
      const auto stopped =
          session->Sync(ids, [](int done, int) { return done < 256; });
      ASSERT_FALSE(stopped.ok());
      EXPECT_EQ(stopped.error().code, Code::kCancelled);
      EXPECT_TRUE(engine->DrainSaves(/*seconds_max=*/60).ok());
    }
    const Answer retry = MustAsk(options, ids);
    EXPECT_EQ(retry.sync.reused_tokens, 256) << retry.sync.miss_reason;
    EXPECT_EQ(retry.text, MustAsk({.model_path = kStories260K}, ids).text);
  }
}

// Kill -9 in the middle of a long prefill: no manifest was written, and the
// blocks that were finished are found by their ids alone.
TEST(PromptCache, AKilledPrefillKeepsItsFinishedBlocks) {
  TempDir dir;
  const EngineOptions options = WithDir(dir.path() + "/s");
  const std::vector<std::int32_t> ids = Ids(500);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto engine = Engine::Open(options).value();
    const auto session = engine->NewSession().value();
    (void)session->Sync(ids, [&](int done, int) {
      // As slow as a real model, then killed when the disk has something.
      if (done == 0) ::usleep(600'000);
      for (int i = 0; done > 0 && i < 1000; ++i) {
        if (FilesBelow(options.prompt_cache_dir, ".kv").size() == 4) {
          ::raise(SIGKILL);
        }
        ::usleep(10'000);
      }
      return true;
    });
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the blocks were never written";
  EXPECT_TRUE(FilesBelow(dir.path(), ".kvcache").empty());
  const Answer retry = MustAsk(options, ids);
  EXPECT_EQ(retry.sync.reused_tokens, 256) << retry.sync.miss_reason;
  EXPECT_EQ(retry.text, MustAsk({.model_path = kStories260K}, ids).text);
}

// What each id stands for behind other text.
std::vector<std::string> Pieces(const TextCodec& codec) {
  const std::int32_t before = codec.Encode("x", false)->back();
  const std::string start = *codec.Decode(std::vector{before});
  std::vector<std::string> pieces;
  for (std::int32_t id = 0; id < codec.vocab_size(); ++id) {
    const auto both = codec.Decode(std::vector{before, id});
    pieces.push_back(both.ok() && both->starts_with(start)
                         ? both->substr(start.size())
                         : "");
  }
  return pieces;
}

// The ids with most tokens spelled letter by letter, as a model may sample them.
std::vector<std::int32_t> SpelledOut(const TextCodec& codec,
                                     const std::vector<std::int32_t>& ids) {
  const std::vector<std::string> pieces = Pieces(codec);
  std::vector<std::int32_t> out;
  for (std::size_t i = 0; i < ids.size(); ++i) {
    std::vector<std::int32_t> letters;
    for (const char c : pieces[static_cast<std::size_t>(ids[i])]) {
      const auto found =
          std::find(pieces.begin(), pieces.end(), std::string(1, c));
      if (found == pieces.end()) letters.clear();
      if (found == pieces.end()) break;
      letters.push_back(static_cast<std::int32_t>(found - pieces.begin()));
    }
    if (i < 4 || letters.empty()) letters = {ids[i]};
    out.insert(out.end(), letters.begin(), letters.end());
  }
  return out;
}

TEST(PromptCache, TheSameTextUnderOtherIdsIsFoundAndContinued) {
  TempDir dir;
  EngineOptions options = WithDir(dir.path() + "/s");
  std::string text = "Once upon a time there was a little girl named Lily.";
  for (int i = 0; i < 6; ++i) text += " She saw a big red ball and ran to it.";
  const auto plain = Engine::Open({.model_path = kStories260K}).value();
  const TextCodec& codec = plain->codec();
  const auto sampled = SpelledOut(codec, codec.Encode(text, true).value());
  ASSERT_EQ(*codec.Decode(sampled),
            *codec.Decode(codec.Encode(text, true).value()));
  MustAsk(options, sampled);

  const auto asked = codec.Encode(text + " The end was near.", true).value();
  const auto prefer = [&] {
    return Engine::Open(options).value()->PreferStoredIds(asked);
  };
  EXPECT_EQ(prefer().ids, asked) << "off unless asked for";
  EXPECT_EQ(prefer().from_store, 0);
  options.cache_by_text = true;
  const PromptIds ids = prefer();
  EXPECT_EQ(ids.from_store, static_cast<int>(sampled.size()));
  EXPECT_EQ(*codec.Decode(ids.ids), *codec.Decode(asked));
  const Answer hot = MustAsk(options, ids.ids);
  EXPECT_EQ(hot.sync.reused_tokens, ids.from_store);
  // The answer is the one that these ids have without any store.
  EXPECT_EQ(hot.text, MustAsk({.model_path = kStories260K}, ids.ids).text);
}

// R61: a hit that is slower than computing is not taken.
TEST(PromptCache, R61_LoadingIsLeftOutWhereComputingIsFaster) {
  TempDir dir;
  EngineOptions options = WithDir(dir.path() + "/s");
  const Answer cold = MustAsk(options, Ids(500));
  const auto memos = FilesBelow(dir.path(), ".speed");
  ASSERT_EQ(memos.size(), 1u);
  const auto pretend_slow_disk = [&] {
    std::ofstream(memos[0]) << R"({"version": 1, "load_bytes_per_s": 1000.0,)"
                            << R"( "prefill_tokens_per_s": 5000.0})";
  };
  pretend_slow_disk();
  const Answer declined = MustAsk(options, Ids(500));
  EXPECT_EQ(declined.sync.reused_tokens, 0);
  EXPECT_NE(declined.sync.miss_reason.find("--cache-always"), std::string::npos)
      << declined.sync.miss_reason;
  EXPECT_EQ(declined.text, cold.text);
  pretend_slow_disk();
  options.cache_always = true;
  EXPECT_EQ(MustAsk(options, Ids(500)).sync.reused_tokens, 499);
  // A memo that makes no sense is none.
  options.cache_always = false;
  for (const char* text : {"", "{", "[]", "{\"version\": 2}",
                           "{\"version\": 1, \"load_bytes_per_s\": -1e999}"}) {
    std::ofstream(memos[0]) << text;
    EXPECT_EQ(MustAsk(options, Ids(500)).sync.reused_tokens, 499) << text;
  }
}

TEST(PromptCache, FileWinsOverDirectory) {
  TempDir dir;
  EngineOptions options = WithDir(dir.path() + "/s");
  options.prompt_cache_file = dir.path() + "/one.kvcache";
  const Answer cold = MustAsk(options, Ids(150));
  EXPECT_TRUE(fs::exists(options.prompt_cache_file));
  const Answer hot = MustAsk(options, Ids(150));
  EXPECT_EQ(hot.sync.reuse_tier, "file");
  EXPECT_EQ(hot.sync.reused_tokens, 149);
  EXPECT_EQ(hot.text, cold.text);
  EXPECT_TRUE(FilesBelow(dir.path(), ".kv").empty()) << "nothing in the directory";
}

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
  EngineOptions options{.model_path = kHfLlama};
  options.prompt_cache_dir = dir.path() + "/s";
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
  const auto plain =
      *(*Engine::Open({.model_path = model}))->codec().Encode(
          "The cat and the dog <|eos|>", true);
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
  ASSERT_TRUE(WriteFileAtomically(model + "/tokenizer.json", AsBytes(json)).ok());
  EXPECT_NE(encode(), plain);
}

TEST(PromptCache, SessionKeepsItsOwnPrefixInMemory) {
  auto engine = Engine::Open({.model_path = kStories260K});
  ASSERT_TRUE(engine.ok());
  auto session = *(*engine)->NewSession();
  ASSERT_TRUE(session->Sync(Ids(100), nullptr).ok());
  const auto longer = session->Sync(Ids(120), nullptr);
  ASSERT_TRUE(longer.ok());
  EXPECT_EQ(longer->reused_tokens, 100);
  EXPECT_EQ(longer->reuse_tier, "memory");
  const auto shorter = session->Sync(Ids(90), nullptr);
  ASSERT_TRUE(shorter.ok());
  EXPECT_EQ(shorter->reused_tokens, 89);
}

TEST(PromptCache, CancelledPrefillKeepsWhatItComputed) {
  auto engine = Engine::Open({.model_path = kStories260K});
  ASSERT_TRUE(engine.ok());
  auto session = *(*engine)->NewSession();
  const auto stopped =
      session->Sync(Ids(500), [](int done, int) { return done < 256; });
  ASSERT_FALSE(stopped.ok());
  EXPECT_EQ(stopped.error().code, Code::kCancelled);
  const auto resumed = session->Sync(Ids(500), nullptr);
  ASSERT_TRUE(resumed.ok());
  EXPECT_EQ(resumed->reused_tokens, 256);
}

TEST(PromptCache, BadPromptsAreRefusedByName) {
  auto engine = Engine::Open({.model_path = kStories260K, .context_tokens = 64});
  ASSERT_TRUE(engine.ok());
  auto session = *(*engine)->NewSession();
  EXPECT_EQ(session->Sync({}, nullptr).error().code, Code::kInvalidArgument);
  EXPECT_EQ(session->Sync(Ids(65), nullptr).error().code, Code::kResourceFull);
  EXPECT_EQ(session->Sync(std::vector<std::int32_t>{512}, nullptr).error().code,
            Code::kInvalidArgument);
  EXPECT_TRUE(session->Sync(Ids(64), nullptr).ok());
}

}  // namespace
}  // namespace hearth
