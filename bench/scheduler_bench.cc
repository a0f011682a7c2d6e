// The scheduler without HTTP, beside the calls that a single user makes, in one
// run: what several conversations decode together, how long an answer is silent
// while somebody's cold prompt is computed, and what that costs the prompt.
//
//   scheduler_bench MODEL [PROMPT_TOKENS] [DECODE_TOKENS]
#include <algorithm>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "base/stopwatch.h"
#include "hearth/engine.h"
#include "serve/schedule/scheduler.h"

namespace hearth::serve {
namespace {

std::vector<std::int32_t> RandomPrompt(int n, int n_vocab, unsigned seed) {
  std::mt19937 rng(seed);
  std::vector<std::int32_t> ids;
  for (int i = 0; i < n; ++i) {
    ids.push_back(
        static_cast<std::int32_t>(rng() % static_cast<unsigned>(n_vocab)));
  }
  return ids;
}

GenerateOptions Greedy(int n_tokens) {
  GenerateOptions options{.n_tokens_max = n_tokens, .ignore_eos = true};
  options.sampling.temperature = 0;
  return options;
}

// Jobs asked at once, and when their tokens came.
class Crowd {
 public:
  explicit Crowd(Engine& engine)
      : vocab_(engine.info().vocab_size),
        scheduler_(Scheduler::Make(engine, {.resting_max = 0})),
        thread_([this] { scheduler_->Run(); }) {}
  ~Crowd() {
    scheduler_->Stop();
    thread_.join();
  }

  std::size_t Ask(int n_prompt, int n_tokens) {
    const std::lock_guard lock(mutex_);
    const std::size_t index = times_.size();
    times_.emplace_back();
    Job job{.prompt = RandomPrompt(n_prompt, vocab_, seed_++),
            .options = Greedy(n_tokens)};
    job.callbacks.on_token = [this, index](int, const Token& token) {
      const std::lock_guard guard(mutex_);
      if (token.id >= 0) times_[index].push_back(clock_.ms());
      news_.notify_all();
      return true;
    };
    job.callbacks.on_done = [this](const JobReport&) {
      const std::lock_guard guard(mutex_);
      ++n_done_;
      news_.notify_all();
    };
    if (!scheduler_->Submit(std::move(job)).ok()) std::abort();
    return index;
  }
  void AwaitTokens(std::size_t index, std::size_t n) {
    std::unique_lock lock(mutex_);
    news_.wait(lock, [&] { return times_[index].size() >= n; });
  }
  std::vector<double> Times(std::size_t index) {
    const std::lock_guard lock(mutex_);
    return times_[index];
  }
  void AwaitAll() {
    std::unique_lock lock(mutex_);
    news_.wait(lock, [&] { return n_done_ == times_.size(); });
  }
  double Now() const { return clock_.ms(); }

 private:
  const int vocab_;
  unsigned seed_ = 1;
  const Stopwatch clock_;
  std::mutex mutex_;
  std::condition_variable news_;
  std::vector<std::vector<double>> times_;
  std::size_t n_done_ = 0;
  std::unique_ptr<Scheduler> scheduler_;
  std::thread thread_;
};

// Tokens a second of `n` conversations between the last one's first token and
// the first one's end.
double DecodeTogether(Engine& engine, int n, int n_decode) {
  Crowd crowd(engine);
  std::vector<std::size_t> all;
  for (int i = 0; i < n; ++i) all.push_back(crowd.Ask(16, n_decode));
  crowd.AwaitAll();
  double begin = 0, end = 1e300;
  for (const std::size_t i : all) {
    const auto times = crowd.Times(i);
    begin = std::max(begin, times.front());
    end = std::min(end, times.back());
  }
  std::size_t n_tokens = 0;
  for (const std::size_t i : all) {
    for (const double t : crowd.Times(i)) n_tokens += t > begin && t <= end;
  }
  return 1000 * static_cast<double>(n_tokens) / (end - begin);
}

double Alone(Engine& engine, int n_prompt, int n_decode, double* rate) {
  const auto session = engine.NewSession().value();
  const Stopwatch clock;
  double first = 0;
  if (!session
           ->Sync(RandomPrompt(n_prompt, engine.info().vocab_size, 99), nullptr)
           .ok()) {
    std::abort();
  }
  const auto report = session->Generate(Greedy(n_decode), [&](const Token&) {
    if (first == 0) first = clock.ms();
    return true;
  });
  if (rate != nullptr) *rate = 1000 * (n_decode - 1) / report->decode_ms;
  return first;
}

void Report(Engine& engine, int n_prompt, int n_decode) {
  double one = 0;
  (void)Alone(engine, 16, n_decode, &one);
  std::printf("decode, one alone by Generate: %.1f tokens/s\n", one);
  for (const int n : {1, 2, 4, 8}) {
    const double sum = DecodeTogether(engine, n, n_decode);
    std::printf("decode, %d conversations: %.1f tokens/s, %.2f x one alone\n",
                n, sum, sum / one);
  }
  const double sync = Alone(engine, n_prompt, 1, nullptr);
  std::printf("first token, cold %d, by Sync: %.0f ms\n", n_prompt, sync);
  for (const int n : {0, 3}) {
    Crowd crowd(engine);
    std::vector<std::size_t> answers;
    for (int i = 0; i < n; ++i) answers.push_back(crowd.Ask(16, 100000));
    for (const std::size_t i : answers) crowd.AwaitTokens(i, 20);
    const double asked = crowd.Now();
    const std::size_t cold = crowd.Ask(n_prompt, 1);
    crowd.AwaitTokens(cold, 1);
    const double first = crowd.Times(cold).front();
    std::printf(
        "first token, cold %d, beside %d answers: %.0f ms, %.2f x Sync\n",
        n_prompt, n, first - asked, (first - asked) / sync);
    double gap = 0;
    int n_tokens = 0;
    for (const std::size_t i : answers) {
      double last = asked;
      for (const double t : crowd.Times(i)) {
        if (t <= asked || t > first) continue;
        gap = std::max(gap, t - last);
        last = t;
        ++n_tokens;
      }
    }
    if (n == 0) continue;
    std::printf(
        "longest silence of an answer meanwhile: %.0f ms; %.1f tokens/s\n", gap,
        1000 * n_tokens / (first - asked));
  }
}

}  // namespace
}  // namespace hearth::serve

int main(int argc, char** argv) {
  if (argc < 2) {
    std::fprintf(stderr,
                 "usage: scheduler_bench MODEL [PROMPT_TOKENS] "
                 "[DECODE_TOKENS]\n");
    return 2;
  }
  const auto engine = hearth::Engine::Open(
      {.model_path = argv[1], .kv_storage = hearth::KvStorage::kFp16});
  if (!engine.ok()) {
    std::fprintf(stderr, "%s\n", engine.error().message.c_str());
    return 1;
  }
  hearth::serve::Report(**engine, argc > 2 ? std::atoi(argv[2]) : 1024,
                        argc > 3 ? std::atoi(argv[3]) : 128);
  return 0;
}
