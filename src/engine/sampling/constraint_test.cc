// A sampler with a constraint: what may come, and in which order things count.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "engine/sampling/sampler.h"

namespace hearth {
namespace {

// Given ids in turn, each step some; then nothing.
class Steps final : public TokenConstraint {
 public:
  explicit Steps(std::vector<std::vector<std::int32_t>> steps)
      : steps_(std::move(steps)) {}
  void Mask(std::span<std::uint64_t> bits) override {
    std::fill(bits.begin(), bits.end(), 0);
    if (at_ >= steps_.size()) return;
    for (const std::int32_t id : steps_[at_]) {
      bits[static_cast<std::size_t>(id) / 64] |= std::uint64_t{1} << (id % 64);
    }
  }
  void Accept(std::int32_t id) override {
    EXPECT_EQ(std::count(steps_[at_].begin(), steps_[at_].end(), id), 1);
    ++at_;
  }
  int Mark() const override { return static_cast<int>(at_); }
  void Return(int mark) override { at_ = static_cast<std::size_t>(mark); }

 private:
  std::vector<std::vector<std::int32_t>> steps_;
  std::size_t at_ = 0;
};

class ConstrainedSampler : public testing::Test {
 protected:
  Sampler Make(const SamplingOptions& options,
               std::vector<std::vector<std::int32_t>> steps) {
    return Sampler(options, tokenizer_.get(),
                   std::make_unique<Steps>(std::move(steps)));
  }
  const std::unique_ptr<Tokenizer> tokenizer_ = MakeByteTokenizer();
  const std::vector<float> logits_ = [] {
    std::vector<float> logits(256);
    for (std::size_t i = 0; i < 256; ++i) logits[i] = static_cast<float>(i);
    return logits;
  }();
};

TEST_F(ConstrainedSampler, TakesTheLikeliestOfWhatMayCome) {
  for (const double temperature : {0.0, 0.8}) {
    Sampler sampler = Make({.temperature = temperature}, {{3, 70, 9}, {5}});
    auto id = sampler.Sample(logits_, {});
    EXPECT_EQ(id, 70);
    sampler.Keep(*id);
    id = sampler.Sample(logits_, {});
    EXPECT_EQ(id, 5);
    sampler.Keep(*id);
    EXPECT_EQ(sampler.Sample(logits_, {}), std::nullopt);
  }
}

TEST_F(ConstrainedSampler, FormCountsMoreThanWhatIsUnwanted) {
  const double never = -std::numeric_limits<double>::infinity();
  const SamplingOptions options{.temperature = 0,
                                .logit_bias = {{9, never}, {3, 1000}},
                                .suppressed_ids = {70}};
  EXPECT_EQ(Make(options, {{3, 70, 9}}).Sample(logits_, {}), 3);
  EXPECT_EQ(Make(options, {{70, 9, 4}}).Sample(logits_, {}), 4);
  EXPECT_EQ(Make(options, {{70, 9}}).Sample(logits_, {}), 70);
}

TEST_F(ConstrainedSampler, FiltersSeeOnlyWhatMayCome) {
  const SamplingOptions options{
      .temperature = 1, .top_k = 2, .min_p = 0.01, .seed = 3};
  for (int i = 0; i < 50; ++i) {
    SamplingOptions seeded = options;
    seeded.seed = static_cast<std::uint64_t>(i);
    const auto id = Make(seeded, {{8, 9, 10}}).Sample(logits_, {});
    EXPECT_TRUE(id == 9 || id == 10);
  }
}

TEST_F(ConstrainedSampler, GuessesAheadLeaveNothingBehind) {
  Sampler sampler = Make({.temperature = 0}, {{3}, {4}, {5}});
  {
    Sampler::Ahead ahead(sampler);
    Distribution q;
    EXPECT_TRUE(ahead.Keep(3));
    EXPECT_FALSE(ahead.Keep(3));
    ahead.Filter(logits_, {}, q);
    EXPECT_EQ(q.candidates.front().id, 4);
    EXPECT_TRUE(ahead.Keep(4));
    // A draft whose vocabulary ends before what may come has no guess.
    ahead.Filter(std::span(logits_).first(5), {}, q);
    EXPECT_TRUE(q.candidates.empty());
    EXPECT_TRUE(ahead.Keep(5));
    ahead.Filter(logits_, {}, q);
    EXPECT_TRUE(q.candidates.empty());
  }
  EXPECT_EQ(sampler.Sample(logits_, {}), 3);
}

}  // namespace
}  // namespace hearth
