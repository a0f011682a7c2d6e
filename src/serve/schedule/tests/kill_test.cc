// P3: after kill -9 the next process computes only what is new, and at most a
// block more, of every turn whose end was saved; and of a turn in the middle
// what was saved on the way.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

#include "serve/schedule/tests/scheduler_testing.h"
#include "testing/launch.h"
#include "testing/temp_dir.h"

namespace hearth::serve {
namespace {

constexpr int kTalks = 8;
constexpr int kTurns = 3;
constexpr int kBlock = 16;

EngineOptions Options(const std::string& dir) {
  EngineOptions options = WithDir(dir);
  options.block_tokens = kBlock;
  return options;
}

// What conversation `talk` says in turn `turn`, answers included: prompts[t] is
// the prompt of turn t, prompts[kTurns] what would be asked next.
std::vector<Job> Conversation(int talk) {
  std::mt19937 rng(static_cast<unsigned>(talk));
  const auto engine = OpenEngine({.model_path = kStories260K, .n_threads = 1});
  const auto session = *engine->NewSession();
  std::vector<Job> jobs;
  TokenIds ids = RandomTokens(rng, Pick(rng, 20, 60));
  for (int turn = 0; turn <= kTurns; ++turn) {
    jobs.push_back({.prompt = ids, .options = Wish(Pick(rng, 5, 20), rng())});
    EXPECT_TRUE(session->Sync(ids, nullptr).ok());
    const auto report = session->Generate(jobs.back().options, nullptr);
    ids.insert(ids.end(), report->token_ids.begin(), report->token_ids.end());
    const TokenIds more = RandomTokens(rng, Pick(rng, 3, 12));
    ids.insert(ids.end(), more.begin(), more.end());
  }
  return jobs;
}

// All conversations at once; each saved turn is told to `fd`.
void Talk(const std::string& dir, const std::vector<std::vector<Job>>& talks,
          int fd) {
  const auto engine = OpenEngine(Options(dir));
  Served served(*engine, {});
  std::vector<std::thread> speakers;
  for (int talk = 0; talk < kTalks; ++talk) {
    speakers.emplace_back([&, talk] {
      for (int turn = 0; turn < kTurns; ++turn) {
        const auto& job = talks[static_cast<std::size_t>(talk)]
                               [static_cast<std::size_t>(turn)];
        (void)served.Await(served.Ask(job));
        (void)engine->DrainSaves();
        const char said[2] = {static_cast<char>(talk), static_cast<char>(turn)};
        (void)!::write(fd, said, 2);
      }
    });
  }
  for (std::thread& speaker : speakers) speaker.join();
}

// The turns that were saved when the child was killed, behind `n_told` of them.
std::vector<int> TalkUntilKilled(const std::string& dir,
                                 const std::vector<std::vector<Job>>& talks,
                                 int n_told) {
  int fds[2];
  EXPECT_EQ(::pipe(fds), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(fds[0]);
    Talk(dir, talks, fds[1]);
    ::_exit(0);
  }
  ::close(fds[1]);
  std::vector<int> n_turns(kTalks, 0);
  char said[2];
  for (int n = 0; ::read(fds[0], said, 2) == 2; ++n) {
    int& turns = n_turns[static_cast<std::size_t>(said[0])];
    turns = std::max(turns, said[1] + 1);
    if (n == n_told) {
      EXPECT_EQ(::kill(child, SIGKILL), 0);
    }
  }
  ::close(fds[0]);
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return n_turns;
}

TEST(SchedulerKill, TheNextProcessComputesOnlyWhatIsNew) {
  std::vector<std::vector<Job>> talks;
  for (int talk = 0; talk < kTalks; ++talk) {
    talks.push_back(Conversation(talk));
  }
  std::mt19937 rng(99);
  for (int round = 0; round < 3; ++round) {
    TempDir dir;
    const auto n_turns =
        TalkUntilKilled(dir.path(), talks, Pick(rng, 0, kTalks * kTurns - 2));
    const auto engine = OpenEngine(Options(dir.path()));
    Served served(*engine, {});
    for (int talk = 0; talk < kTalks; ++talk) {
      const auto& jobs = talks[static_cast<std::size_t>(talk)];
      const auto n =
          static_cast<std::size_t>(n_turns[static_cast<std::size_t>(talk)]);
      const Outcome next = served.Await(served.Ask(jobs[n]));
      ASSERT_TRUE(next.ends.at(0).ok());
      // The last token of the answer before was sampled, not computed.
      const int n_old = n == 0 ? 0
                               : static_cast<int>(jobs[n - 1].prompt.size()) +
                                     jobs[n - 1].options.n_tokens_max - 1;
      const int n_new = static_cast<int>(jobs[n].prompt.size()) - n_old;
      EXPECT_LE(next.done[0].computed_tokens, n_new + kBlock)
          << "talk " << talk << " after " << n << " turns";
      EXPECT_EQ(next.ends.at(0)->token_ids.size(),
                static_cast<std::size_t>(jobs[n].options.n_tokens_max));
    }
  }
}

// A long answer that is killed in the middle: its sealed blocks are there.
TEST(SchedulerKill, ALongAnswerIsSavedOnItsWay) {
  TempDir dir;
  const EngineOptions options = Options(dir.path() + "/s");
  std::mt19937 rng(5);
  const Job job{.prompt = RandomTokens(rng, 40), .options = Wish(200, 1)};
  const pid_t child = ::fork();
  if (child == 0) {
    const auto engine = OpenEngine(options);
    Served served(*engine, {});
    int n = 0;
    const JobId id = served.Ask(job, [&](JobId, int) {
      // As slow as a real model, then killed when the disk has something.
      if (++n == 60) ::usleep(600'000);
      if (n < 62) return;
      for (int i = 0; i < 6000; ++i) {
        if (FilesBelow(options.prompt_cache_dir, ".kv").size() >= 6) {
          ::raise(SIGKILL);
        }
        ::usleep(10'000);
      }
      ::_exit(1);
    });
    (void)served.Await(id);
    ::_exit(1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the blocks were never written";
  const Heard alone = Alone(options, job);
  Job again = job;
  again.prompt.insert(again.prompt.end(), alone.ids.begin(),
                      alone.ids.begin() + 70);
  const auto engine = OpenEngine(options);
  Served served(*engine, {});
  const Outcome outcome = served.Await(served.Ask(again));
  EXPECT_GE(outcome.done[0].reused_tokens, 96)
      << "40 of the prompt and 60 of the answer, in blocks of 16";
}

}  // namespace
}  // namespace hearth::serve
