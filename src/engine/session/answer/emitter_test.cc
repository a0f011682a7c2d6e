#include "engine/session/answer/emitter.h"

#include <gtest/gtest.h>

#include <cmath>

#include "text/tokenizer.h"

namespace hearth {
namespace {

class EmitterTest : public ::testing::Test {
 protected:
  Emitter New(GenerateOptions options) {
    return {*tokenizer_, std::move(options),
            [this](const Token& token) {
              told_ += token.text;
              ids_.push_back(token.id);
              return told_.size() < n_told_max_;
            },
            nullptr};
  }
  // Emits the text's bytes as they come, as far as the answer goes.
  static std::size_t EmitAll(Emitter& emitter, std::string_view text) {
    std::size_t n = 0;
    for (const char c : text) {
      ++n;
      if (!emitter.Emit(static_cast<unsigned char>(c), {}).has_value()) break;
    }
    return n;
  }

  const std::unique_ptr<Tokenizer> tokenizer_ = MakeByteTokenizer();
  std::size_t n_told_max_ = 1000;
  std::string told_;
  std::vector<std::int32_t> ids_;
};

TEST_F(EmitterTest, EndsAtTheLimitWithAllOfTheText) {
  Emitter emitter = New({.n_tokens_max = 3});
  EXPECT_EQ(emitter.n_left(), 3);
  EXPECT_EQ(EmitAll(emitter, "abcdef"), 3U);
  EXPECT_EQ(emitter.n_left(), 0);
  const GenerateReport report = emitter.Finish();
  EXPECT_EQ(report.stop, StopReason::kLength);
  EXPECT_EQ(report.text, "abc");
  EXPECT_EQ(told_, "abc");
  EXPECT_EQ(report.token_ids, (std::vector<std::int32_t>{'a', 'b', 'c'}));
}

TEST_F(EmitterTest, WhatMayBecomeAStopTextIsHeldBack) {
  Emitter emitter = New({.stop_texts = {"END"}});
  EXPECT_EQ(EmitAll(emitter, "aEN"), 3U);
  EXPECT_EQ(told_, "a");
  EXPECT_EQ(EmitAll(emitter, "xEND and more"), 4U);
  const GenerateReport report = emitter.Finish();
  EXPECT_EQ(report.stop, StopReason::kEndOfText);
  EXPECT_EQ(report.stop_text, "END");
  EXPECT_EQ(report.text, "aENx");
  EXPECT_EQ(told_, report.text);
}

TEST_F(EmitterTest, WhatWasHeldBackComesAtTheEnd) {
  Emitter emitter = New({.n_tokens_max = 3, .stop_texts = {"END"}});
  EmitAll(emitter, "aEN");
  EXPECT_EQ(told_, "a");
  const GenerateReport report = emitter.Finish();
  EXPECT_EQ(report.text, "aEN");
  EXPECT_EQ(told_, report.text);
  EXPECT_EQ(ids_.back(), -1) << "text of no token of its own";
}

TEST_F(EmitterTest, ACharacterComesWhole) {
  Emitter emitter = New({.n_tokens_max = 4});
  EmitAll(emitter, "\xE2\x82");
  EXPECT_EQ(told_, "");
  EmitAll(emitter, "\xAC");
  EXPECT_EQ(told_, "\xE2\x82\xAC");
  EmitAll(emitter, "\xE2");
  EXPECT_EQ(emitter.Finish().text, "\xE2\x82\xAC\xEF\xBF\xBD")
      << "one that was cut is the replacement character";
}

TEST_F(EmitterTest, TheCallerEndsIt) {
  n_told_max_ = 2;
  Emitter emitter = New({});
  EXPECT_EQ(EmitAll(emitter, "abc"), 2U);
  EXPECT_EQ(emitter.Finish().stop, StopReason::kCaller);
}

TEST_F(EmitterTest, AnEndMarkerIsNoTokenOfTheAnswer) {
  const std::int32_t end = '$';
  tokenizer_->AddEnds({{end}});
  Emitter emitter = New({});
  EmitAll(emitter, "a");
  EXPECT_FALSE(emitter.Emit(end, {}).has_value());
  const GenerateReport report = emitter.Finish();
  EXPECT_EQ(report.stop, StopReason::kEndOfText);
  EXPECT_EQ(report.end_id, end);
  EXPECT_EQ(report.token_ids.size(), 1U);

  Emitter deaf = New({.ignore_eos = true});
  EXPECT_TRUE(deaf.Emit(end, {}).has_value());
}

TEST_F(EmitterTest, LogProbabilitiesAreThoseOfTheWholeVocabulary) {
  std::vector<TokenLogprob> top;
  double logprob = 0;
  Emitter emitter(
      *tokenizer_, {.logprobs = true, .top_logprobs = 2},
      [&](const Token& token) {
        logprob = token.logprob;
        top.assign(token.top.begin(), token.top.end());
        return true;
      },
      nullptr);
  std::vector<float> logits(static_cast<std::size_t>(tokenizer_->vocab_size()),
                            -1000.0F);
  logits['a'] = std::log(1.0F);
  logits['b'] = std::log(2.0F);
  logits['c'] = std::log(5.0F);
  emitter.Emit('a', logits);
  EXPECT_NEAR(logprob, std::log(1.0 / 8), 1e-6);
  ASSERT_EQ(top.size(), 2U);
  EXPECT_EQ(top[0].id, 'c');
  EXPECT_NEAR(top[0].logprob, std::log(5.0 / 8), 1e-6);
  EXPECT_EQ(top[1].id, 'b');
}

}  // namespace
}  // namespace hearth
