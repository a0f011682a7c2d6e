// Random schedules of arrivals, cancels, slow readers, save faults and budgets
// on an engine that only counts: what must hold after every pass does. The long
// run is scripts/simulate-schedules.
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <queue>

#include "serve/schedule/tests/driver_probe_testing.h"
#include "serve/schedule/tests/fake_engine_testing.h"
#include "testing/sanitized.h"

namespace hearth::serve {

namespace {

using TokenIds = std::vector<std::int32_t>;

constexpr std::int32_t kPoison = 5000;

// What one job's client saw and does.
struct Client {
  TokenIds prompt;
  GenerateOptions options;
  int n = 1;
  int buffer_max = 0;  // tokens that it may leave unread; 0: reads at once
  int unread = 0;
  bool paused = false, cancelled = false, poisoned = false;
  bool started = false, done = false;
  std::vector<TokenIds> heard;
  std::vector<int> ends;
  std::vector<double> last_ms;  // of each choice's newest token
  std::vector<bool> disturbed;  // since then: paused, parked, a failed step
};

class Simulation {
 public:
  explicit Simulation(unsigned seed)
      : rng_(seed),
        engine_(RandomEngine(), seed),
        options_(RandomScheduler()),
        driver_(engine_, options_,
                [this](Lookup lookup) {
                  At(Odds(2) ? 0 : Real(0, 300), [this, lookup] {
                    driver_.Matched(lookup.id,
                                    engine_.Find(lookup.tokens, lookup.n_held,
                                                 lookup.key_space));
                  });
                }),
        probe_(driver_) {
    engine_.on_step = [this](std::span<const SequenceStep> s) { OnStep(s); };
    const int n_jobs = Int(1, 10);
    for (int i = 0; i < n_jobs; ++i) PlanJob();
  }

  void Run() {
    for (int i = 0; i < 200000; ++i) {
      while (!events_.empty() && events_.top().ms <= engine_.NowMs()) {
        const auto act = events_.top().act;
        events_.pop();
        act();
      }
      if (driver_.empty() && events_.empty()) break;
      n_failed_before_ = engine_.n_failed();
      const bool computed = driver_.Step();
      AfterPass();
      if (::testing::Test::HasFailure()) return;
      if (computed) continue;
      double wait = driver_.WaitMs().value_or(1e300);
      if (!events_.empty()) {
        wait = std::min(wait, events_.top().ms - engine_.NowMs());
      }
      if (wait > 1e299) {
        ASSERT_TRUE(driver_.empty()) << "somebody waits for ever";
        continue;
      }
      engine_.Advance(std::max(wait, 1e-3));
    }
    // I8
    ASSERT_TRUE(driver_.empty()) << "somebody never ends";
    for (const auto& [id, client] : clients_) {
      EXPECT_TRUE(client.done);
      for (const int n : client.ends) EXPECT_EQ(n, 1);
    }
    EXPECT_EQ(engine_.promised_blocks(), 0);
  }

  std::uint64_t n_computed() const { return engine_.n_computed(); }
  SchedulerView View() const { return driver_.View(); }

 private:
  struct Event {
    double ms;
    std::uint64_t order;
    std::function<void()> act;
    bool operator<(const Event& other) const {
      return ms != other.ms ? ms > other.ms : order > other.order;
    }
  };

  int Int(int low, int high) {
    return low +
           static_cast<int>(rng_() % static_cast<unsigned>(high - low + 1));
  }
  bool Odds(int n) { return rng_() % static_cast<unsigned>(n) == 0; }
  double Real(double low, double high) {
    return std::uniform_real_distribution<>(low, high)(rng_);
  }
  void At(double ms_from_now, std::function<void()> act) {
    events_.push({engine_.NowMs() + ms_from_now, n_events_++, std::move(act)});
  }

  FakeOptions RandomEngine() {
    FakeOptions options;
    options.budget_blocks = Odds(3) ? 0 : Int(3, 40);
    options.store = !Odds(3);
    options.base_ms = Real(0.1, 20);
    options.decode_row_ms = Real(0.1, 3);
    options.prefill_row_ms = Real(0.1, 20);
    options.save_ms = Odds(3) ? 200 : Real(0.1, 10);
    options.save_fault = Odds(3) ? Real(0, 1) : 0;
    options.queue_blocks = Int(1, 64);
    options.guesses = Odds(2) ? 0 : Int(1, 64);
    options.draft_row_ms = Odds(3) ? Real(0.05, 5) : 0;
    options.poison = kPoison;
    return options;
  }
  SchedulerOptions RandomScheduler() {
    SchedulerOptions options;
    options.running_max = Int(1, 10);
    options.decode_share = Real(0, 0.9);
    options.stall_ms = Real(10, 500);
    options.memory_wait_ms = Real(0, 2000);
    options.resting_max = Int(0, 6);
    return options;
  }

  // Prompts of a few trunks, so that many have a beginning in common.
  TokenIds RandomPrompt() {
    const int trunk = Int(0, 2);
    const int n = Odds(3) ? Int(1, 40) : Int(1, kPromptMax);
    const int n_common = Int(0, n);
    TokenIds ids;
    for (int i = 0; i < n; ++i) {
      ids.push_back(i < n_common ? (trunk * 331 + i * 7) % 1000 : Int(0, 999));
    }
    return ids;
  }

  void PlanJob();
  Job MakeJob(JobId id);
  void OnToken(JobId id, int choice, const Token& token);
  void Disturb(Client& client) {
    client.disturbed.assign(client.disturbed.size(), true);
  }
  void OnStep(std::span<const SequenceStep> steps);
  void CheckDecodersIn(const std::set<const Branch*>& in);
  void AfterPass();
  bool StepFailed() const { return engine_.n_failed() > n_failed_before_; }

  static constexpr int kPromptMax = 300;

  std::mt19937 rng_;
  FakeEngine engine_;
  const SchedulerOptions options_;
  Driver driver_;
  DriverProbe probe_;
  std::priority_queue<Event> events_;
  const double crowd_ms_ = Odds(2) ? 200 : 3000;
  std::uint64_t n_events_ = 0;
  std::map<JobId, Client> clients_;
  int n_failed_before_ = 0;
  double decode_ms_ = 0;  // of the rows of answers in the last pass
};

void Simulation::PlanJob() {
  const JobId id = clients_.size() + 1;
  Client& client = clients_[id];
  client.prompt = RandomPrompt();
  if (Odds(20)) {
    client.poisoned = true;
    client.prompt[client.prompt.size() / 2] = kPoison;
  }
  client.n = Odds(5) ? Int(1, std::min(4, options_.running_max)) : 1;
  client.options.n_tokens_max = Odds(3) ? Int(0, 150) : Int(0, 30);
  client.options.sampling.seed = rng_();
  if (Odds(4)) client.buffer_max = Int(1, 10);
  const auto n = static_cast<std::size_t>(client.n);
  client.heard.resize(n);
  client.ends.assign(n, 0);
  client.last_ms.assign(n, 0);
  client.disturbed.assign(n, true);
  const double arrival = Real(0, crowd_ms_);
  At(arrival, [this, id] { driver_.Add(id, MakeJob(id), engine_.NowMs()); });
  if (Odds(4)) {
    At(arrival + Real(0, 3000), [this, id] {
      clients_[id].cancelled = true;
      driver_.End(id, {Code::kCancelled, "cancelled"});
    });
  }
}

Job Simulation::MakeJob(JobId id) {
  Client& client = clients_[id];
  Job job{.prompt = client.prompt, .options = client.options, .n = client.n};
  if (id % 5 == 0) job.key_space = "other";
  if (id % 3 == 0 && client.prompt.size() > 20) job.save_points = {7, 20};
  job.callbacks.on_start = [&client](const SyncReport& report) {
    EXPECT_FALSE(client.started);
    client.started = true;
    EXPECT_LT(report.reused_tokens, static_cast<int>(client.prompt.size()));
  };
  job.callbacks.on_token = [this, id](int choice, const Token& token) {
    OnToken(id, choice, token);
    return true;
  };
  job.callbacks.on_end = [&client](int choice,
                                   const Result<GenerateReport>& result) {
    const auto c = static_cast<std::size_t>(choice);
    ++client.ends[c];
    EXPECT_FALSE(client.done);
    if (result.ok()) {
      EXPECT_FALSE(client.poisoned);
      EXPECT_EQ(result->token_ids, client.heard[c]);
      EXPECT_EQ(static_cast<int>(client.heard[c].size()),
                client.options.n_tokens_max);
    } else {
      EXPECT_TRUE(client.cancelled || client.poisoned ||
                  result.error().code == Code::kResourceFull)
          << result.error().message;
    }
  };
  job.callbacks.on_done = [&client](const JobReport& report) {
    EXPECT_FALSE(client.done);
    client.done = true;
    EXPECT_EQ(report.reused_tokens + report.computed_tokens,
              client.started ? report.prompt_tokens : 0);
    EXPECT_LE(report.written_tokens, report.computed_tokens);
  };
  return job;
}

void Simulation::OnToken(JobId id, int choice, const Token& token) {
  Client& client = clients_[id];
  const auto c = static_cast<std::size_t>(choice);
  EXPECT_EQ(client.ends[c], 0);
  EXPECT_FALSE(client.cancelled);
  TokenIds& heard = client.heard[c];
  EXPECT_EQ(token.id,
            FakeToken(client.prompt,
                      client.options.sampling.seed + static_cast<unsigned>(c),
                      static_cast<int>(heard.size())))
      << "an answer is its own affair";
  heard.push_back(token.id);
  // I3
  const FakeOptions& costs = engine_.options();
  const double now = engine_.NowMs();
  if (!client.disturbed[c] && !StepFailed()) {
    const double stall = std::max({options_.stall_ms, 16 * costs.prefill_row_ms,
                                   16 * costs.draft_row_ms});
    EXPECT_LE(now - client.last_ms[c],
              1.001 * stall + costs.base_ms + decode_ms_)
        << "I3";
  }
  client.last_ms[c] = now;
  client.disturbed[c] = false;
  // I10: a pass's tokens more than the buffer, of every choice.
  if (client.buffer_max == 0) return;
  ++client.unread;
  EXPECT_LE(client.unread, client.buffer_max + 65 * client.n);
  if (client.unread >= client.buffer_max && !client.paused) {
    client.paused = true;
    At(0, [this, id] {
      Disturb(clients_[id]);
      driver_.Pause(id, true);
    });
    At(Real(1, 2000), [this, id] {
      Client& reader = clients_[id];
      reader.unread = 0;
      reader.paused = false;
      Disturb(reader);
      driver_.Pause(id, false);
    });
  }
}

void Simulation::OnStep(std::span<const SequenceStep> steps) {
  std::size_t rows = 0;
  std::set<const Branch*> in;
  std::set<std::pair<std::string, TokenIds>> blocks;
  decode_ms_ = 0;
  for (const SequenceStep& step : steps) {
    rows += step.tokens.size();
    if (step.want == StepLogits::kAll) {
      decode_ms_ += static_cast<double>(step.tokens.size()) *
                    engine_.options().decode_row_ms;
    }
    const Branch* branch = probe_.Of(step.sequence);
    ASSERT_NE(branch, nullptr) << "nobody's sequence is computed for";
    EXPECT_TRUE(in.insert(branch).second) << "I9: once in a pass";
    EXPECT_FALSE(clients_[branch->job->id].cancelled) << "I7";
    // I6: nobody computes a whole block that another one computes, too.
    TokenIds all = step.sequence->tokens();
    const std::size_t block = (all.size() + 15) / 16;
    all.insert(all.end(), step.tokens.begin(), step.tokens.end());
    if (step.want != StepLogits::kAll && all.size() >= (block + 1) * 16) {
      all.resize((block + 1) * 16);
      EXPECT_TRUE(blocks.emplace(branch->job->job.key_space, all).second)
          << "I6: two compute the same block";
    }
  }
  EXPECT_GE(rows, 1u);
  EXPECT_LE(rows, 512u) << "I2";
  if (StepFailed()) return;  // one by one, to see whose fault it was
  CheckDecodersIn(in);
}

// I2: an answer is left out only for want of memory or rows.
void Simulation::CheckDecodersIn(const std::set<const Branch*>& in) {
  std::size_t rows_of_all = 0;
  std::vector<const Branch*> out;
  probe_.EachBranch([&](const Branch& b) {
    if (b.state != Branch::State::kDecode || b.job->paused) return;
    if (b.unread > 0) return;  // its draft model reads first
    rows_of_all += b.next.size();
    if (!in.contains(&b) && b.short_since < 0) out.push_back(&b);
  });
  EXPECT_TRUE(out.empty() || rows_of_all > 512) << "I2";
}

void Simulation::AfterPass() {
  const int budget = engine_.options().budget_blocks;
  if (budget > 0) {
    EXPECT_LE(engine_.held_blocks() + engine_.promised_blocks(), budget)
        << "I5: " << engine_.held_blocks();
  }
  int n_running = 0;
  probe_.EachBranch([&](const Branch& b) {
    if (b.state == Branch::State::kOver) return;
    ++n_running;
    EXPECT_LE(b.passed_over, probe_.passed_over_max()) << "I4";
    if (b.state != Branch::State::kDecode || b.short_since >= 0 ||
        b.passed_over > 0 || b.unread > 0 || StepFailed()) {
      Disturb(clients_[b.job->id]);
    }
  });
  EXPECT_LE(n_running, std::max(options_.running_max, 4));
}

TEST(SchedulerSimulation, WhatMustHoldDoesInRandomSchedules) {
  // One seed to look at, or many.
  const char* of = std::getenv("HEARTH_SCHEDULES");
  const char* first = std::getenv("HEARTH_FIRST_SCHEDULE");
  const unsigned begin =
      first == nullptr ? 0 : static_cast<unsigned>(std::atoi(first));
  // A sanitizer makes each ten times slower.
  const unsigned n = of == nullptr ? (kSanitized ? 500 : 2000)
                                   : static_cast<unsigned>(std::atoi(of));
  SchedulerView sum;
  for (unsigned seed = begin; seed < begin + n; ++seed) {
    SCOPED_TRACE("schedule " + std::to_string(seed));
    Simulation simulation(seed);
    simulation.Run();
    const SchedulerView view = simulation.View();
    sum.passes += view.passes;
    sum.mixed_passes += view.mixed_passes;
    sum.preempted_prefills += view.preempted_prefills;
    sum.preempted_decodes += view.preempted_decodes;
    sum.done += view.done;
    sum.failed += view.failed;
    sum.cancelled += view.cancelled;
    if (HasFailure()) return;
  }
  RecordProperty("passes", std::to_string(sum.passes));
  std::printf(
      "%u schedules: %llu passes, %llu of them mixed; %llu prefills and %llu "
      "answers gave way; %llu done, %llu failed, %llu cancelled\n",
      n, static_cast<unsigned long long>(sum.passes),
      static_cast<unsigned long long>(sum.mixed_passes),
      static_cast<unsigned long long>(sum.preempted_prefills),
      static_cast<unsigned long long>(sum.preempted_decodes),
      static_cast<unsigned long long>(sum.done),
      static_cast<unsigned long long>(sum.failed),
      static_cast<unsigned long long>(sum.cancelled));
  if (n >= 300) {
    EXPECT_GT(sum.mixed_passes, 0u);
    EXPECT_GT(sum.preempted_prefills, 0u);
    EXPECT_GT(sum.preempted_decodes, 0u);
  }
}

}  // namespace
}  // namespace hearth::serve
