// What the prompt cache keeps of a prefill that was cancelled or killed.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "hearth/engine.h"
#include "testing/launch.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

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
      if (done == 0) {
        ::usleep(600'000);
        return true;
      }
      for (int i = 0;; ++i) {
        if (FilesBelow(options.prompt_cache_dir, ".kv").size() == 4) {
          ::raise(SIGKILL);
        }
        if (i == 6000) ::_exit(1);
        ::usleep(10'000);
      }
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

}  // namespace
}  // namespace hearth
