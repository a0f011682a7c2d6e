// Speculation through the public door: the text, the session's state and the
// reports are those of decoding token by token.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <string>
#include <vector>

#include "engine/sampling/sampler.h"
#include "formats/loader.h"
#include "hearth/engine.h"
#include "kernels/kernels.h"
#include "testing/heads_file.h"
#include "testing/model_paths.h"
#include "testing/temp_dir.h"
#include "testing/tiny_model.h"

namespace hearth {
namespace {

GenerateOptions Greedy(int n) {
  return {.n_tokens_max = n, .sampling = {.temperature = 0}};
}

std::unique_ptr<Engine> Open(const EngineOptions& options) {
  auto engine = Engine::Open(options);
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  return engine.ok() ? std::move(*engine) : nullptr;
}

std::unique_ptr<Session> Synced(Engine& engine,
                                const std::vector<std::int32_t>& ids) {
  auto session = *engine.NewSession();
  EXPECT_TRUE(session->Sync(ids, nullptr).ok());
  return session;
}

std::vector<std::int32_t> TokensOf(const Session& session) {
  return session.tokens();
}

// A byte model of random weights, written to `dir`.
std::string TinyFile(const TempDir& dir, std::uint64_t seed,
                     TinygptForm form = TinygptForm::kF32) {
  const std::string path = dir.path() + "/tiny" + std::to_string(seed) +
                           (form == TinygptForm::kInt4 ? "-int4" : "") +
                           ".tinygpt";
  WriteBytes(
      path,
      MakeTinygpt(
          {.d_model = 32, .heads = 2, .d_mlp = 64, .context = 64, .seed = seed},
          form));
  return path;
}

// Heads that guess that the last token comes again: nothing is added to the
// hidden state, and the output is the model's own embedding.
std::string HeadsFile(const TempDir& dir, const std::string& model_path,
                      bool medusa) {
  const auto model = LoadModel(model_path);
  EXPECT_TRUE(model.ok());
  const ModelConfig& c = model->config;
  std::vector<float> embedding(
      static_cast<std::size_t>(c.vocab_size * c.d_model));
  for (int id = 0; id < c.vocab_size; ++id) {
    ActiveKernels().dequantize_row(model->weights.token_embedding, id,
                                   embedding.data() + id * c.d_model);
  }
  const auto value = [&](const std::string& name, std::uint64_t i) {
    if (name.ends_with("out.weight")) return embedding[i];
    return name == "norm.weight" ? 1.0f : 0.0f;
  };
  const std::string path =
      dir.path() + (medusa ? "/medusa.heads" : "/eagle.heads");
  WriteBytes(path, MakeHeads(c, medusa, 3, 8, value));
  return path;
}

// Generates with and without guesses in every respect that a caller can see:
// lengths around the guesses', a stop text, two answers in a row, a fork.
void ExpectSameAsPlain(Engine& plain, Engine& speculative,
                       const std::vector<std::int32_t>& ids,
                       const std::vector<int>& lengths,
                       const std::string& stop_text) {
  const auto expect_same = [](const Result<GenerateReport>& want,
                              const Result<GenerateReport>& got) {
    ASSERT_TRUE(want.ok() && got.ok());
    EXPECT_EQ(got->token_ids, want->token_ids);
    EXPECT_EQ(got->text, want->text);
    EXPECT_EQ(got->stop, want->stop);
    EXPECT_EQ(got->end_id, want->end_id);
  };
  for (const int n : lengths) {
    auto a = Synced(plain, ids);
    auto b = Synced(speculative, ids);
    GenerateOptions options = Greedy(n);
    if (!stop_text.empty()) options.stop_texts = {stop_text};
    expect_same(a->Generate(options, nullptr), b->Generate(options, nullptr));
    EXPECT_EQ(TokensOf(*a), TokensOf(*b));
    EXPECT_EQ(a->Usage().tokens, b->Usage().tokens);
    auto fork = std::move(*b->Fork());
    // From the state that is left: the logits are the same ones.
    const auto want = a->Generate(Greedy(5), nullptr);
    expect_same(want, fork->Generate(Greedy(5), nullptr));
    expect_same(want, b->Generate(Greedy(5), nullptr));
    EXPECT_EQ(TokensOf(*a), TokensOf(*fork));
    // And rewound, into another conversation.
    const auto half = std::span(ids).first(ids.size() / 2);
    ASSERT_TRUE(a->Sync(half, nullptr).ok() && b->Sync(half, nullptr).ok());
    expect_same(a->Generate(Greedy(6), nullptr),
                b->Generate(Greedy(6), nullptr));
  }
}

struct Drafted {
  const char* name;
  std::string draft;
  int n_accepted_min;
};

TEST(Speculation, GreedyTextIsThatOfPlainDecoding) {
  TempDir dir;
  const std::string tiny = TinyFile(dir, 1), other = TinyFile(dir, 2);
  const struct {
    std::string model, prompt;
    std::vector<Drafted> drafts;
    std::vector<int> lengths;
    std::string stop_text;
  } cases[] = {{kStories260K,
                "Tim had a red ball. Tim had a red ball. Tim had a",
                {{"lookup", "prompt-lookup", 5}, {"itself", kStories260K, 20}},
                {1, 2, 3, 9, 50},
                "upon"},
               {tiny,
                "abcabcabcabc",
                {{"itself", tiny, 20},
                 {"another", other, 0},
                 {"medusa", HeadsFile(dir, tiny, true), 10},
                 {"eagle", HeadsFile(dir, tiny, false), 10}},
                // 64 tokens of context: the last ones fill it.
                {1, 4, 5, 6, 30, 80},
                ""}};
  for (const auto& c : cases) {
    const auto plain = Open({.model_path = c.model, .n_threads = 1});
    ASSERT_NE(plain, nullptr);
    const auto ids = *plain->codec().Encode(c.prompt, true);
    for (const Drafted& draft : c.drafts) {
      SCOPED_TRACE(c.model + " " + draft.name);
      const auto speculative =
          Open({.model_path = c.model, .n_threads = 1, .draft = draft.draft});
      ASSERT_NE(speculative, nullptr);
      ExpectSameAsPlain(*plain, *speculative, ids, c.lengths, c.stop_text);
      auto session = Synced(*speculative, ids);
      const auto report = session->Generate(Greedy(40), nullptr);
      ASSERT_TRUE(report.ok());
      const SpeculationReport& s = report->speculation;
      EXPECT_GE(s.accepted, draft.n_accepted_min);
      EXPECT_LE(s.accepted, s.drafted);
      // Every token but the first is a step's own or an accepted guess.
      if (report->stop == StopReason::kLength) {
        EXPECT_EQ(static_cast<std::size_t>(1 + s.steps + s.accepted),
                  report->token_ids.size());
      }
      auto without = Greedy(10);
      without.speculate = false;
      EXPECT_EQ(session->Generate(without, nullptr)->speculation.drafted, 0);
    }
  }
}

// A guess that is dropped must not have sealed a block, and must not have made
// a window let go of what is needed without it.
TEST(Speculation, QuantisedBlocksAndWindowsKeepTheText) {
  for (const KvStorage storage :
       {KvStorage::kFp16, KvStorage::kInt8, KvStorage::kInt4}) {
    for (const int window : {0, 40}) {
      EngineOptions options{.model_path = kStories260K, .n_threads = 1};
      options.kv_storage = storage;
      options.block_tokens = 16;
      options.streaming_window = window;
      options.streaming_sink = window > 0 ? 2 : 0;
      SCOPED_TRACE(std::string(NameOf(storage)) + " window " +
                   std::to_string(window));
      const auto plain = Open(options);
      const auto ids = *plain->codec().Encode(
          "Tim had a red ball. Tim had a red ball. Tim had a", true);
      for (const std::string& draft :
           {std::string("prompt-lookup"), kStories260K}) {
        options.draft = draft;
        const auto speculative = Open(options);
        ASSERT_NE(speculative, nullptr);
        ExpectSameAsPlain(*plain, *speculative, ids, {3, 60}, "upon");
        auto session = Synced(*speculative, ids);
        EXPECT_GT(session->Generate(Greedy(40), nullptr)->speculation.accepted,
                  4);
      }
    }
  }
}

// A guess without a draw is kept by an ordinary draw.
TEST(Speculation, LookupKeepsTheTextOfASeedAtAnyTemperature) {
  const std::string prompt = "One two three four. One two three four. One two";
  const auto plain = Open({.model_path = kStories260K, .n_threads = 1});
  const auto lookup = Open(
      {.model_path = kStories260K, .n_threads = 1, .draft = "prompt-lookup"});
  const auto ids = *plain->codec().Encode(prompt, true);
  int n_accepted = 0;
  for (std::uint64_t seed = 0; seed < 6; ++seed) {
    const GenerateOptions options{
        .n_tokens_max = 40,
        .sampling = {.temperature = 0.5, .top_p = 0.9, .seed = seed}};
    const auto want = Synced(*plain, ids)->Generate(options, nullptr);
    const auto got = Synced(*lookup, ids)->Generate(options, nullptr);
    EXPECT_EQ(got->text, want->text);
    n_accepted += got->speculation.accepted;
  }
  EXPECT_GT(n_accepted, 0);
}

// The outcomes of four tokens, against their exact probabilities.
void ExpectTheDistributionOf(const SamplingOptions& sampling) {
  TempDir dir;
  // The draft: the same model in four bits, near but not equal.
  const auto engine = Open({.model_path = TinyFile(dir, 1),
                            .n_threads = 1,
                            .draft = TinyFile(dir, 1, TinygptForm::kInt4)});
  ASSERT_NE(engine, nullptr);
  const std::vector<std::int32_t> prompt = {'h', 'e', 'y'};
  using Ids = std::vector<std::int32_t>;
  std::map<Ids, double> exact = {{{}, 1.0}};
  for (int i = 0; i < 4; ++i) {
    std::map<Ids, double> longer;
    for (const auto& [ids, probability] : exact) {
      Ids all = prompt;
      all.insert(all.end(), ids.begin(), ids.end());
      const auto logits = *engine->Logits(all, {});
      Distribution next;
      Sampler(sampling).Filter(std::span(logits).last(static_cast<std::size_t>(
                                   engine->info().vocab_size)),
                               all, next);
      for (const auto& c : next.candidates) {
        Ids more = ids;
        more.push_back(c.id);
        longer[more] = probability * next.Of(c.id);
      }
    }
    exact = std::move(longer);
  }
  ASSERT_EQ(exact.size(), 16u);
  std::map<Ids, int> counts;
  constexpr int kRuns = 3000;
  int n_accepted = 0, n_drafted = 0;
  const auto session = *engine->NewSession();
  for (int run = 0; run < kRuns; ++run) {
    ASSERT_TRUE(session->Sync(prompt, nullptr).ok());
    GenerateOptions options{
        .n_tokens_max = 4, .ignore_eos = true, .sampling = sampling};
    options.sampling.seed = static_cast<std::uint64_t>(run);
    const auto report = session->Generate(options, nullptr);
    ASSERT_TRUE(report.ok());
    ++counts[report->token_ids];
    n_accepted += report->speculation.accepted;
    n_drafted += report->speculation.drafted;
  }
  EXPECT_GT(n_accepted, 0) << "both ways out of a test must be taken";
  EXPECT_LT(n_accepted, n_drafted);
  double chi2 = 0;
  for (const auto& [ids, probability] : exact) {
    const double expected = kRuns * probability;
    chi2 += std::pow(counts[ids] - expected, 2) / expected;
  }
  EXPECT_EQ(counts.size(), 16u) << "nothing outside the filtered distribution";
  EXPECT_LT(chi2, 15 + 4 * std::sqrt(2.0 * 15));
}

TEST(Speculation, ADraftModelLeavesTheDistributionAsItIs) {
  ExpectTheDistributionOf({.temperature = 1.5, .top_k = 2});
}

TEST(Speculation, ADraftModelLeavesThePenaltiesAsTheyAre) {
  ExpectTheDistributionOf({.temperature = 1.5,
                           .top_k = 2,
                           .repeat_penalty = 1.2,
                           .presence_penalty = 0.3,
                           .frequency_penalty = 0.2,
                           .dry_multiplier = 0.4,
                           .dry_allowed_length = 1});
}

TEST(Speculation, WhatCannotDraftIsRefusedWithTheReason) {
  TempDir dir;
  const std::string tiny = TinyFile(dir, 1);
  const struct {
    EngineOptions options;
    std::string says;
  } cases[] = {
      {{.model_path = kStories260K, .draft = tiny}, "vocabularies differ"},
      {{.model_path = kStories260K, .draft = HeadsFile(dir, tiny, true)},
       "another model"},
      {{.model_path = tiny, .draft = dir.path() + "/none"}, "none"},
      {{.model_path = tiny, .draft = "prompt-lookup", .draft_tokens = 0},
       "guesses in one step"}};
  for (const auto& c : cases) {
    const auto engine = Engine::Open(c.options);
    ASSERT_FALSE(engine.ok()) << c.says;
    EXPECT_NE(engine.error().message.find(c.says), std::string::npos)
        << engine.error().message;
  }
}

}  // namespace
}  // namespace hearth
