// Sessions that advance in common forward steps: what each gets is what it gets
// alone, bit for bit, and a step that fails changes nobody.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "hearth/convert.h"
#include "hearth/engine.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"

namespace hearth {
namespace {

using Ids = std::vector<std::int32_t>;

std::unique_ptr<Engine> Open(const EngineOptions& options) {
  auto engine = Engine::Open(options);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  return engine.ok() ? std::move(*engine) : nullptr;
}

int Random(std::mt19937& rng, int low, int high) {
  return low + static_cast<int>(rng() % static_cast<unsigned>(high - low + 1));
}

Ids RandomIds(std::mt19937& rng, int n, int n_vocab) {
  Ids ids;
  for (int i = 0; i < n; ++i) ids.push_back(Random(rng, 0, n_vocab - 1));
  return ids;
}

// Sequences that take part in random steps with random cuts, rewound now and
// then.
struct Party {
  Ids ids;
  std::vector<float> want;  // of every token, computed alone
  std::unique_ptr<Session> session;
  std::size_t at = 0;
};

void ExpectRows(const Party& party, std::size_t n, std::size_t n_vocab) {
  const auto got = party.session->logits();
  ASSERT_EQ(got.size(), n * n_vocab);
  if (got.empty()) return;  // memcmp takes no null
  ASSERT_EQ(
      std::memcmp(got.data(), party.want.data() + (party.at - n) * n_vocab,
                  got.size() * sizeof(float)),
      0)
      << "up to token " << party.at;
}

void RunRandomSteps(Engine& engine, std::mt19937& rng) {
  const auto n_vocab = static_cast<std::size_t>(engine.info().vocab_size);
  std::vector<Party> parties(4);
  for (Party& party : parties) {
    const int n_most = std::min(150, engine.context_tokens());
    party.ids =
        RandomIds(rng, Random(rng, 1, n_most), engine.info().vocab_size);
    auto want = engine.Logits(party.ids, {});
    ASSERT_TRUE(want.ok()) << want.error().message;
    party.want = std::move(*want);
    party.session = *engine.NewSession();
  }
  const auto unfinished = [&] {
    return std::any_of(parties.begin(), parties.end(),
                       [](const Party& p) { return p.at < p.ids.size(); });
  };
  while (unfinished()) {
    std::vector<SessionStep> steps;
    std::vector<Party*> in_step;
    for (Party& party : parties) {
      if (party.at == party.ids.size() || rng() % 3 == 0) continue;
      const std::size_t n = std::min(
          party.ids.size() - party.at,
          static_cast<std::size_t>(rng() % 2 == 0 ? 1 : Random(rng, 1, 40)));
      steps.push_back({party.session.get(),
                       std::span(party.ids).subspan(party.at, n),
                       static_cast<StepLogits>(Random(rng, 0, 2))});
      in_step.push_back(&party);
    }
    const auto done = engine.Step(steps);
    ASSERT_TRUE(done.ok()) << done.error().message;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      in_step[i]->at += steps[i].tokens.size();
      const std::size_t n_rows = steps[i].want == StepLogits::kNone ? 0
                                 : steps[i].want == StepLogits::kLast
                                     ? 1
                                     : steps[i].tokens.size();
      ExpectRows(*in_step[i], n_rows, n_vocab);
    }
    Party& other = parties[rng() % parties.size()];
    if (rng() % 8 == 0 && other.at > 0) {
      other.at = static_cast<std::size_t>(
          Random(rng, 0, static_cast<int>(other.at) - 1));
      ASSERT_TRUE(other.session->Rewind(static_cast<int>(other.at)).ok());
    }
  }
}

struct BatchCase {
  const char* name;
  KvStorage storage;
  int sink, window;
  bool yoco = false;
};

class EquivalenceBatch : public ::testing::TestWithParam<BatchCase> {};

TEST_P(EquivalenceBatch, RandomStepsTogetherAreEachSequenceAlone) {
  TempDir dir;
  EngineOptions options{.model_path = kStories260K,
                        .n_threads = 2,
                        .kv_storage = GetParam().storage,
                        .block_tokens = 16,
                        .streaming_sink = GetParam().sink,
                        .streaming_window = GetParam().window};
  if (GetParam().yoco) {
    options.model_path = dir.path() + "/yoco.tinygpt";
    ASSERT_TRUE(InitModel("tiny", options.model_path, 0, true, 1).ok());
  }
  const auto engine = Open(options);
  ASSERT_NE(engine, nullptr);
  for (unsigned seed = 0; seed < 3; ++seed) {
    std::mt19937 rng(seed);
    RunRandomSteps(*engine, rng);
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, EquivalenceBatch,
    ::testing::Values(BatchCase{"fp32", KvStorage::kFp32, 0, 0},
                      BatchCase{"fp16", KvStorage::kFp16, 0, 0},
                      BatchCase{"bf16", KvStorage::kBf16, 0, 0},
                      BatchCase{"int8", KvStorage::kInt8, 0, 0},
                      BatchCase{"int4", KvStorage::kInt4, 0, 0},
                      BatchCase{"fp16_sinks", KvStorage::kFp16, 4, 40},
                      BatchCase{"int8_sinks", KvStorage::kInt8, 3, 21},
                      BatchCase{"fp32_window", KvStorage::kFp32, 0, 33},
                      BatchCase{"yoco", KvStorage::kFp16, 0, 0, true}),
    [](const auto& test) { return std::string(test.param.name); });

// --- Answers -----------------------------------------------------------------

std::vector<GenerateOptions> Wishes() {
  std::vector<GenerateOptions> wishes;
  for (unsigned i = 0; i < 4; ++i) {
    GenerateOptions options{.n_tokens_max = 15 + 9 * static_cast<int>(i)};
    options.sampling = {.temperature = i == 0 ? 0.0 : 0.9, .seed = i};
    if (i == 2) options.stop_texts = {" the"};
    wishes.push_back(options);
  }
  return wishes;
}

const char* const kPrompts[] = {"The dog saw", "Once upon a time",
                                "A cat and a", "One day, one day, one day,"};

// Every session's answer step by step, all in one batch.
std::vector<GenerateReport> AnswerTogether(
    Engine& engine, const std::vector<std::unique_ptr<Session>>& sessions,
    const std::vector<GenerateOptions>& wishes) {
  std::vector<std::unique_ptr<Generation>> answers;
  for (std::size_t i = 0; i < sessions.size(); ++i) {
    answers.push_back(*sessions[i]->Begin(wishes[i], nullptr, nullptr));
  }
  while (true) {
    std::vector<SessionStep> steps;
    for (std::size_t i = 0; i < sessions.size(); ++i) {
      const auto next = answers[i]->Next();
      EXPECT_TRUE(next.ok()) << next.error().message;
      if (!next->empty()) {
        steps.push_back({sessions[i].get(), *next, StepLogits::kAll});
      }
    }
    if (steps.empty()) break;
    const auto done = engine.Step(steps);
    EXPECT_TRUE(done.ok()) << done.error().message;
  }
  std::vector<GenerateReport> reports;
  for (const auto& answer : answers) reports.push_back(answer->Finish());
  return reports;
}

TEST(EquivalenceBatch, AnswersTogetherAreThoseOfGenerate) {
  for (const char* draft : {"", "prompt-lookup"}) {
    const auto engine =
        Open({.model_path = kStories260K, .draft = draft, .draft_tokens = 4});
    const auto wishes = Wishes();
    std::vector<std::unique_ptr<Session>> together;
    std::vector<GenerateReport> alone;
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      const Ids ids = *engine->codec().Encode(kPrompts[i], true);
      auto session = *engine->NewSession();
      ASSERT_TRUE(session->Sync(ids, nullptr).ok());
      alone.push_back(*session->Generate(wishes[i], nullptr));
      together.push_back(*engine->NewSession());
      ASSERT_TRUE(together.back()->Sync(ids, nullptr).ok());
    }
    const auto reports = AnswerTogether(*engine, together, wishes);
    for (std::size_t i = 0; i < wishes.size(); ++i) {
      EXPECT_EQ(reports[i].token_ids, alone[i].token_ids) << i;
      EXPECT_EQ(reports[i].text, alone[i].text) << i;
      EXPECT_EQ(reports[i].stop, alone[i].stop) << i;
      EXPECT_EQ(reports[i].stop_text, alone[i].stop_text) << i;
    }
  }
}

TEST(Generation, WantsItsTokensAppended) {
  const auto engine = Open({.model_path = kStories260K});
  auto session = *engine->NewSession();
  ASSERT_TRUE(session->Sync(Ids{1, 2, 3}, nullptr).ok());
  auto answer = *session->Begin({.n_tokens_max = 5, .ignore_eos = true},
                                nullptr, nullptr);
  ASSERT_EQ(answer->Next()->size(), 1u);
  const auto early = answer->Next();
  ASSERT_FALSE(early.ok());
  EXPECT_EQ(early.error().code, Code::kInvalidArgument);
}

// --- What a step refuses -----------------------------------------------------

TEST(BatchStep, AFailedStepChangesNoSession) {
  const auto engine = Open({.model_path = kStories260K, .context_tokens = 40});
  auto fine = *engine->NewSession();
  auto full = *engine->NewSession();
  const Ids ids = {1, 2, 3, 4, 5}, forty(40, 7), one = {3},
            foreign = {5, 99999};
  ASSERT_TRUE(fine->Sync(ids, nullptr).ok());
  ASSERT_TRUE(full->Sync(forty, nullptr).ok());
  const std::vector<float> before(fine->logits().begin(), fine->logits().end());
  const auto refused = [&](const Ids& tokens, Session* other, Code code) {
    const std::vector<SessionStep> steps = {
        {fine.get(), one, StepLogits::kLast}, {other, tokens}};
    const auto done = engine->Step(steps);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, code) << done.error().message;
    EXPECT_EQ(fine->tokens(), ids);
    EXPECT_EQ(full->tokens(), forty);
    EXPECT_TRUE(std::equal(before.begin(), before.end(), fine->logits().begin(),
                           fine->logits().end()));
  };
  const auto other_engine = Open({.model_path = kStories260K});
  auto stranger = *other_engine->NewSession();
  auto third = *engine->NewSession();
  refused(one, full.get(), Code::kResourceFull);
  refused(foreign, third.get(), Code::kInvalidArgument);
  refused({}, third.get(), Code::kInvalidArgument);
  refused(one, fine.get(), Code::kInvalidArgument);
  refused(one, nullptr, Code::kInvalidArgument);
  refused(one, stranger.get(), Code::kInvalidArgument);
  refused(Ids(512, 1), third.get(), Code::kResourceFull);
  EXPECT_TRUE(engine->Step({}).ok());
}

TEST(BatchStep, TheMemoryBudgetIsHeldAndRefusedBeforeAnybodyGrows) {
  EngineOptions options{.model_path = kStories260K, .block_tokens = 16};
  const auto size = Open(options)->info().kv_bytes_per_token[0].second * 16;
  options.kv_ram_budget_bytes = size * 5 / 2;
  const auto engine = Open(options);
  auto a = *engine->NewSession();
  auto b = *engine->NewSession();
  auto c = *engine->NewSession();
  const Ids ids(10, 3);
  std::vector<SessionStep> steps = {{a.get(), ids}, {b.get(), ids}};
  ASSERT_TRUE(engine->Step(steps).ok());
  steps = {{a.get(), ids}, {c.get(), ids}};
  const auto refused = engine->Step(steps);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kResourceFull);
  EXPECT_EQ(a->tokens().size(), 10u);
  EXPECT_TRUE(c->tokens().empty());
  b->Finish();
  steps = {{c.get(), ids}};
  EXPECT_TRUE(engine->Step(steps).ok()) << "b rests, so its memory may go";
  EXPECT_TRUE(b->tokens().empty());
}

// --- Lookup apart from attaching
// -----------------------------------------------

TEST(PromptCacheMatch, IsMadeApartAndAttachedOnlyToItsPrompt) {
  TempDir dir;
  std::mt19937 rng(3);
  const Ids ids = RandomIds(rng, 200, 512);
  EngineOptions options{.model_path = kStories260K,
                        .prompt_cache_dir = dir.path() + "/cache"};
  {
    const auto engine = Open(options);
    auto session = *engine->NewSession();
    ASSERT_TRUE(session->Sync(ids, nullptr).ok());
    session->Finish();
    ASSERT_TRUE(engine->DrainSaves().ok());
  }
  const auto engine = Open(options);
  PrefixMatch match = engine->Match(ids);
  EXPECT_EQ(match.n_tokens(), 200);
  auto session = *engine->NewSession();
  Ids other = ids;
  other[5] ^= 1;
  const auto wrong = session->Attach(other, engine->Match(ids));
  ASSERT_FALSE(wrong.ok());
  EXPECT_EQ(wrong.error().code, Code::kInvalidArgument);
  const auto report = session->Attach(ids, std::move(match));
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->reused_tokens, 199);
  EXPECT_EQ(report->reuse_tier, "disk");
  const SessionStep step{session.get(), std::span(ids).last(1)};
  ASSERT_TRUE(engine->Step({&step, 1}).ok());
  const auto want = *engine->Logits(ids, {});
  EXPECT_EQ(std::memcmp(session->logits().data(),
                        want.data() + want.size() - session->logits().size(),
                        session->logits().size_bytes()),
            0);
  EXPECT_EQ(engine->Match(ids, 200).n_tokens(), 0) << "nothing to be gained";
}

// --- Log probabilities
// -----------------------------------------------------------

TEST(Generate, LogProbabilitiesAreTheModelsOwn) {
  const auto engine = Open({.model_path = kStories260K});
  const int n_vocab = engine->info().vocab_size;
  auto session = *engine->NewSession();
  ASSERT_TRUE(session->Sync(Ids{1, 2, 3}, nullptr).ok());
  GenerateOptions options{.n_tokens_max = 6,
                          .ignore_eos = true,
                          .logprobs = true,
                          .top_logprobs = n_vocab + 5};
  options.sampling = {.temperature = 0.5, .top_k = 3, .seed = 4};
  int n_tokens = 0;
  const auto report = session->Generate(options, [&](const Token& token) {
    if (token.id < 0) return true;
    ++n_tokens;
    EXPECT_EQ(token.top.size(), static_cast<std::size_t>(n_vocab));
    double sum = 0;
    for (std::size_t i = 0; i < token.top.size(); ++i) {
      sum += std::exp(token.top[i].logprob);
      if (i > 0) {
        EXPECT_LE(token.top[i].logprob, token.top[i - 1].logprob);
      }
      if (token.top[i].id == token.id) {
        EXPECT_EQ(token.top[i].logprob, token.logprob);
        EXPECT_LT(i, 3u) << "top-k chose among the most probable";
      }
    }
    EXPECT_NEAR(sum, 1, 1e-9);
    return true;
  });
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(n_tokens, 6);
  options.top_logprobs = -1;
  EXPECT_FALSE(session->Generate(options, nullptr).ok());
}

}  // namespace
}  // namespace hearth
