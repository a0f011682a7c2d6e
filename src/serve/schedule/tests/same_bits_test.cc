// P2: an answer has the same tokens and log probabilities in any company, cut
// and interrupted in any way, as alone.
#include <cstdlib>

#include "serve/schedule/tests/scheduler_testing.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth::serve {
namespace {

struct BitsCase {
  const char* name;
  KvStorage storage = KvStorage::kFp32;
  int sink = 0, window = 0;
  std::string draft = {};
  int budget_blocks = 0;  // few enough that answers give way to each other
  bool stored = false;
  std::string model = kStories260K;
  int n_vocab = 500;
};

// Models that carry states.
BitsCase Hybrid(const char* name, const char* model, bool stored,
                const std::string& draft = {},
                KvStorage storage = KvStorage::kFp32) {
  BitsCase hybrid{.name = name, .storage = storage, .draft = draft};
  hybrid.stored = stored;
  hybrid.model = kTestData + "/models/hf/" + model;
  hybrid.n_vocab = 370;
  return hybrid;
}

class SchedulerSameBits : public ::testing::TestWithParam<BitsCase> {
 protected:
  EngineOptions Options() const {
    const BitsCase& test = GetParam();
    EngineOptions options{.model_path = test.model,
                          .n_threads = 1,
                          .kv_storage = test.storage,
                          .block_tokens = 16,
                          .streaming_sink = test.sink,
                          .streaming_window = test.window,
                          .draft = test.draft,
                          .draft_tokens = 4};
    if (test.stored) {
      options.prompt_cache_dir = dir_.path() + "/cache";
      options.cache_always = true;
    }
    if (test.budget_blocks > 0) {
      const auto engine = OpenEngine(options);
      for (const auto& [name, bytes] : engine->info().kv_bytes_per_token) {
        if (name == NameOf(test.storage)) {
          options.kv_ram_budget_bytes =
              bytes * 16 * static_cast<std::uint64_t>(test.budget_blocks);
        }
      }
    }
    return options;
  }

 private:
  TempDir dir_;
};

// 2 to 8 requests; some begin alike, some repeat themselves.
std::vector<Job> RandomJobs(std::mt19937& rng, int n_vocab) {
  std::vector<Job> jobs;
  const TokenIds trunk = RandomTokens(rng, 60, n_vocab);
  const int n = Pick(rng, 2, 8);
  for (int i = 0; i < n; ++i) {
    TokenIds prompt = RandomTokens(rng, Pick(rng, 1, 90), n_vocab);
    if (rng() % 2 == 0) {
      prompt.insert(prompt.begin(), trunk.begin(),
                    trunk.begin() + Pick(rng, 1, 60));
    }
    if (rng() % 3 == 0) prompt.insert(prompt.end(), 8, prompt.back());
    jobs.push_back(
        {.prompt = prompt,
         .options = Wish(Pick(rng, 1, 40), rng(), rng() % 3 == 0 ? 0.0 : 0.9),
         .n = rng() % 4 == 0 ? 2 : 1});
  }
  return jobs;
}

TEST_P(SchedulerSameBits, InAnyCompany) {
  const EngineOptions options = Options();
  std::uint64_t preemptions = 0;
  // Two of each kind, or as many as are asked for (scripts/same-bits).
  const char* const of = std::getenv("HEARTH_SAME_BITS");
  const unsigned n_seeds =
      of == nullptr ? 2 : static_cast<unsigned>(std::atoi(of));
  for (unsigned seed = 0; seed < n_seeds && !HasFailure(); ++seed) {
    std::mt19937 rng(seed);
    const std::vector<Job> jobs = RandomJobs(rng, GetParam().n_vocab);
    const auto engine = OpenEngine(options);
    Served served(*engine,
                  {.stall_ms = 1.0 * Pick(rng, 1, 20), .memory_wait_ms = 20});
    std::vector<JobId> ids;
    for (const Job& job : jobs) {
      ids.push_back(served.Ask(job, [&](JobId, int) {
        if (options.kv_ram_budget_bytes == 0) return;
        // P11. Between passes as within: callbacks come behind each.
        EXPECT_LE(engine->MemoryInUse().held_bytes,
                  options.kv_ram_budget_bytes);
      }));
    }
    for (std::size_t i = 0; i < jobs.size(); ++i) {
      const Outcome outcome = served.Await(ids[i]);
      for (int choice = 0; choice < jobs[i].n; ++choice) {
        ASSERT_TRUE(outcome.ends.at(choice).ok())
            << outcome.ends.at(choice).error().message;
        EXPECT_EQ(outcome.answers.at(choice), Alone(options, jobs[i], choice))
            << "seed " << seed << ", job " << i << "." << choice;
      }
      preemptions += static_cast<std::uint64_t>(outcome.done[0].preemptions);
    }
    served.Stop();
    EXPECT_TRUE(engine->DrainSaves().ok());
  }
  // With a store its writer may be quick enough.
  if (GetParam().budget_blocks > 0 && !GetParam().stored) {
    EXPECT_GT(preemptions, 0u);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, SchedulerSameBits,
    ::testing::Values(
        BitsCase{"fp32"}, BitsCase{"fp16", KvStorage::kFp16},
        BitsCase{"int8", KvStorage::kInt8}, BitsCase{"int4", KvStorage::kInt4},
        BitsCase{"sinks", KvStorage::kFp16, 4, 40},
        BitsCase{"window_int8", KvStorage::kInt8, 0, 33},
        BitsCase{"lookup", KvStorage::kFp32, 0, 0, "prompt-lookup"},
        BitsCase{"lookup_int8", KvStorage::kInt8, 0, 0, "prompt-lookup"},
        BitsCase{"draft_model", KvStorage::kFp32, 0, 0, kStories260K},
        BitsCase{"small_budget", KvStorage::kFp32, 0, 0, "", 14},
        BitsCase{"small_budget_int8", KvStorage::kInt8, 0, 0, "", 40},
        BitsCase{"small_budget_lookup", KvStorage::kFp32, 0, 0, "prompt-lookup",
                 14},
        BitsCase{"small_budget_stored", KvStorage::kFp16, 0, 0, "", 14, true},
        Hybrid("inputs", "lfm2", false), Hybrid("inputs_stored", "lfm2", true),
        Hybrid("delta_net_stored", "qwen3_5_long", true),
        Hybrid("delta_net_stored_int8", "qwen3_5_long", true, "",
               KvStorage::kInt8),
        Hybrid("delta_net_stored_lookup", "qwen3_5_long", true,
               "prompt-lookup")),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace hearth::serve
