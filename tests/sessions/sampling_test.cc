// Sampling options and constraints through the public door: guesses change no
// text, and an answer that ends by itself has the form that was asked for.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "base/json.h"
#include "hearth/engine.h"
#include "hearth/grammar.h"
#include "testing/model_paths.h"

namespace hearth {
namespace {

const std::string kPrompt =
    "One two three four. One two three four. One two three four. One two";

std::unique_ptr<Engine> Open(const std::string& draft) {
  auto engine = Engine::Open(
      {.model_path = kStories260K, .n_threads = 1, .draft = draft});
  EXPECT_TRUE(engine.ok()) << engine.error().message;
  return std::move(*engine);
}

struct Answer {
  GenerateReport report;
  std::vector<double> logprobs;
  std::vector<std::int32_t> tokens;  // of the session, afterwards
};

Answer Ask(Engine& engine, const std::string& prompt, GenerateOptions options) {
  auto session = *engine.NewSession();
  EXPECT_TRUE(
      session->Sync(*engine.codec().Encode(prompt, true), nullptr).ok());
  options.logprobs = true;
  Answer answer;
  auto report = session->Generate(options, [&](const Token& token) {
    if (token.id >= 0) answer.logprobs.push_back(token.logprob);
    return true;
  });
  EXPECT_TRUE(report.ok()) << report.error().message;
  answer.report = std::move(*report);
  answer.tokens = session->tokens();
  return answer;
}

void ExpectSame(const Answer& want, const Answer& got) {
  EXPECT_EQ(got.report.token_ids, want.report.token_ids);
  EXPECT_EQ(got.report.text, want.report.text);
  EXPECT_EQ(got.report.stop, want.report.stop);
  EXPECT_EQ(got.report.end_id, want.report.end_id);
  EXPECT_EQ(got.logprobs, want.logprobs);
  EXPECT_EQ(got.tokens, want.tokens);
}

// Every option on in about half of the draws.
SamplingOptions RandomOptions(std::mt19937& random) {
  const auto chance = [&] { return random() % 2 == 0; };
  const auto real = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  SamplingOptions o;
  o.temperature = chance() ? 0 : real(0.2, 1.2);
  o.seed = random();
  if (chance()) o.top_k = 20;
  if (chance()) o.top_p = real(0.7, 1);
  if (chance()) o.min_p = real(0, 0.2);
  if (chance()) o.repeat_penalty = real(0.8, 1.3);
  if (chance()) o.presence_penalty = real(-1, 1);
  if (chance()) o.frequency_penalty = real(-0.5, 0.5);
  o.repeat_last_n = static_cast<int>(random() % 100) - 1;
  if (chance()) o.dry_multiplier = real(0, 1);
  if (chance()) o.dry_sequence_breakers = {"."};
  if (chance()) o.xtc_probability = real(0, 1);
  if (chance()) o.logit_bias[static_cast<std::int32_t>(random() % 512)] = 2;
  if (chance()) {
    o.suppressed_ids = {static_cast<std::int32_t>(random() % 512)};
  }
  return o;
}

const char* const kForms[] = {
    "",
    "root ::= (\"One two three four. \" | \"One two. \"){1,4}",
    "root ::= [a-z ]+ \".\" [A-Z]?",
    R"({"properties": {"name": {"type": "string", "maxLength": 12},
        "ages": {"type": "array", "items": {"type": "integer"},
        "maxItems": 3}}, "required": ["name"]})",
};

MakeConstraint FormOf(Engine& engine, const std::string& form) {
  if (form.empty()) return {};
  auto made = form.starts_with("{") ? ConstraintFromJsonSchema(engine, form)
                                    : ConstraintFromGbnf(engine, form);
  EXPECT_TRUE(made.ok()) << made.error().message;
  return made->make;
}

TEST(Sampling, GuessesChangeNoTextUnderAnyOptionsAndForms) {
  const auto plain = Open("");
  const auto lookup = Open("prompt-lookup");
  const auto model = Open(kStories260K);
  std::mt19937 random(11);
  int n_accepted = 0;
  for (int round = 0; round < 40; ++round) {
    GenerateOptions options{.n_tokens_max = 40};
    options.sampling = RandomOptions(random);
    options.ignore_eos = round % 5 == 0;
    const std::string form = kForms[round % 4];
    SCOPED_TRACE("round " + std::to_string(round) + " " + form);
    options.constraint = FormOf(*plain, form);
    const Answer want = Ask(*plain, kPrompt, options);
    options.constraint = FormOf(*lookup, form);
    const Answer got = Ask(*lookup, kPrompt, options);
    ExpectSame(want, got);
    n_accepted += got.report.speculation.accepted;
    if (options.sampling.temperature > 0) continue;
    // A draft model's guesses are drawn: the same text when greedy, else the
    // same distribution (Speculation.ADraftModelLeaves...).
    options.constraint = FormOf(*model, form);
    const Answer drafted = Ask(*model, kPrompt, options);
    ExpectSame(want, drafted);
    n_accepted += drafted.report.speculation.accepted;
  }
  EXPECT_GT(n_accepted, 100) << "both ways out of a test must be taken";
}

TEST(Sampling, WhatIsOffChangesNoBit) {
  const auto engine = Open("");
  GenerateOptions plain{.n_tokens_max = 60, .sampling = {.seed = 5}};
  GenerateOptions off = plain;
  off.sampling.repeat_last_n = -1;
  off.sampling.dry_base = 3;
  off.sampling.xtc_threshold = 0.01;
  off.sampling.logit_bias = {{7, 0.0}};
  ExpectSame(Ask(*engine, kPrompt, plain), Ask(*engine, kPrompt, off));
}

TEST(Sampling, PenaltiesSeeThePromptAndTheAnswer) {
  const auto engine = Open("");
  GenerateOptions options{.n_tokens_max = 40, .sampling = {.temperature = 0}};
  options.sampling.presence_penalty = 1000;
  options.sampling.repeat_last_n = -1;
  const Answer answer = Ask(*engine, kPrompt, options);
  std::vector<std::int32_t> all = *engine->codec().Encode(kPrompt, true);
  for (const std::int32_t id : answer.report.token_ids) {
    EXPECT_EQ(std::count(all.begin(), all.end(), id), 0) << id;
    all.push_back(id);
  }
  EXPECT_GT(answer.report.token_ids.size(), 10u);
}

TEST(Sampling, UncachedIsTheSameText) {
  const auto engine = Open("");
  std::mt19937 random(4);
  for (int round = 0; round < 4; ++round) {
    GenerateOptions options{.n_tokens_max = 12};
    options.sampling = RandomOptions(random);
    options.constraint = FormOf(*engine, kForms[round]);
    const Answer want = Ask(*engine, kPrompt, options);
    const auto session = *engine->NewSession();
    const auto got = session->GenerateUncached(
        *engine->codec().Encode(kPrompt, true), options, nullptr);
    ASSERT_TRUE(got.ok());
    EXPECT_EQ(got->token_ids, want.report.token_ids);
    EXPECT_EQ(got->stop, want.report.stop);
  }
}

TEST(Constraint, AnAnswerThatEndsIsOfTheSchema) {
  const auto engine = Open("");
  const auto form = ConstraintFromJsonSchema(
      *engine,
      R"({"properties": {"name": {"type": "string", "maxLength": 8},
          "n": {"type": "integer", "minimum": 3, "maximum": 40}},
          "required": ["name", "n"]})");
  ASSERT_TRUE(form.ok()) << form.error().message;
  int n_ended = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    GenerateOptions options{.n_tokens_max = 120,
                            .sampling = {.temperature = 1, .seed = seed},
                            .constraint = form->make};
    const Answer answer = Ask(*engine, "Tim said:", options);
    if (answer.report.stop != StopReason::kEndOfText) continue;
    ++n_ended;
    const Json json = Json::parse(answer.report.text, nullptr, false);
    ASSERT_TRUE(json.is_object()) << answer.report.text;
    EXPECT_EQ(json.size(), 2u);
    EXPECT_TRUE(json["name"].is_string());
    EXPECT_GE(json["n"].get<int>(), 3);
    EXPECT_LE(json["n"].get<int>(), 40);
  }
  EXPECT_GT(n_ended, 10);
}

// The end marker is allowed where the text may end, and nowhere else; where the
// text can only end and the marker is passed over, the answer is over.
TEST(Constraint, EndsWhereItMay) {
  const auto engine = Open("");
  const auto form = ConstraintFromGbnf(*engine, "root ::= \"yes\" | \"no\"");
  ASSERT_TRUE(form.ok());
  for (const bool ignore_eos : {false, true}) {
    GenerateOptions options{.n_tokens_max = 50,
                            .ignore_eos = ignore_eos,
                            .sampling = {.temperature = 0},
                            .constraint = form->make};
    const Answer answer = Ask(*engine, kPrompt, options);
    EXPECT_TRUE(answer.report.text == "yes" || answer.report.text == "no")
        << answer.report.text;
    EXPECT_EQ(answer.report.stop, StopReason::kEndOfText);
    EXPECT_EQ(answer.report.end_id >= 0, !ignore_eos);
  }
}

TEST(Constraint, LogprobsStayTheModels) {
  const auto engine = Open("");
  const auto form = ConstraintFromGbnf(*engine, "root ::= \"zebra\"");
  ASSERT_TRUE(form.ok());
  const Answer answer =
      Ask(*engine, kPrompt,
          {.n_tokens_max = 1,
           .sampling = {.temperature = 0, .logit_bias = {{5, 50}}},
           .constraint = form->make});
  ASSERT_EQ(answer.logprobs.size(), 1u);
  const auto ids = *engine->codec().Encode(kPrompt, true);
  const auto all = *engine->Logits(ids, {});
  const auto logits = std::span(all).last(512);
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit});
  const auto id = static_cast<std::size_t>(answer.report.token_ids[0]);
  EXPECT_NEAR(answer.logprobs[0], logits[id] - std::log(sum), 1e-6);
}

TEST(Constraint, IsRefusedWithTheReason) {
  const auto engine = Open("");
  const auto gbnf = ConstraintFromGbnf(*engine, "root ::= [a");
  ASSERT_FALSE(gbnf.ok());
  EXPECT_EQ(gbnf.error().code, Code::kInvalidArgument);
  EXPECT_FALSE(ConstraintFromJsonSchema(*engine, "{").ok());
  const auto schema = ConstraintFromJsonSchema(*engine, R"({"not": {}})");
  ASSERT_FALSE(schema.ok());
  EXPECT_EQ(schema.error().code, Code::kUnsupported);
  const auto noted = ConstraintFromJsonSchema(
      *engine, R"({"type": "string", "colour": "red"})");
  ASSERT_TRUE(noted.ok());
  EXPECT_EQ(noted->notes.size(), 1u);
  GenerateOptions none;
  none.constraint = [] { return std::unique_ptr<TokenConstraint>(); };
  auto session = *engine->NewSession();
  ASSERT_TRUE(session->Sync(std::vector<std::int32_t>{1}, nullptr).ok());
  EXPECT_FALSE(session->Generate(none, nullptr).ok());
}

// A constraint outlives its engine, and one may be asked on several threads.
TEST(Constraint, KeepsWhatItNeeds) {
  auto engine = Open("");
  const int n_vocab = engine->codec().vocab_size();
  const auto form = ConstraintOfJsonObject(*engine);
  ASSERT_TRUE(form.ok());
  engine.reset();
  const auto constraint = form->make();
  std::vector<std::uint64_t> bits((static_cast<std::size_t>(n_vocab) + 63) /
                                  64);
  constraint->Mask(bits);
  EXPECT_TRUE(std::any_of(bits.begin(), bits.end(),
                          [](std::uint64_t word) { return word != 0; }));
}

}  // namespace
}  // namespace hearth
