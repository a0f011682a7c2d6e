#include "serve/schedule/tests/fake_engine_testing.h"

namespace hearth::serve {

FakeBlockPtr FakeEngine::Publish(std::uint64_t id) {
  if (FakeBlockPtr there = Lookup(id); there != nullptr) return there;
  auto block = std::make_shared<FakeBlock>(*this, id);
  index_[id] = block;
  return block;
}

std::unique_ptr<Found> FakeEngine::Find(std::span<const std::int32_t> tokens,
                                        int, const std::string& key_space) {
  auto found = std::make_unique<FakeFound>();
  std::uint64_t id = Mix(1, std::hash<std::string>()(key_space));
  const auto step = static_cast<std::size_t>(block_tokens());
  for (std::size_t n = 0; (n + 1) * step <= tokens.size(); ++n) {
    for (const std::int32_t t : tokens.subspan(n * step, step)) {
      id = Mix(id, static_cast<std::uint64_t>(t));
    }
    if (!stored_.contains(id)) break;
    found->ids.push_back(id);
  }
  return found;
}

void FakeEngine::ExchangeStored() {
  for (FakeSequence* sequence : sequences_) {
    for (const FakeBlockPtr& block : sequence->blocks_) {
      if (stored_.contains(block->id)) block->Map();
    }
  }
}

bool FakeEngine::Relieve(FakeSequence& asking, int n_blocks, Relief relief) {
  ExchangeStored();
  for (FakeSequence* idle : sequences_) {
    if (Fits(n_blocks)) break;
    if (idle == &asking || !idle->resting_) continue;
    if (relief == Relief::kFree &&
        (!options_.store || idle->n_handed_ < idle->n_tokens())) {
      continue;
    }
    idle->Truncate(0);
  }
  return Fits(n_blocks);
}

Result<void> FakeEngine::Step(std::span<const SequenceStep> steps) {
  if (on_step) on_step(steps);
  int prefill_rows = 0, decode_rows = 0;
  bool fails = false;
  for (const SequenceStep& step : steps) {
    (step.want == StepLogits::kAll ? decode_rows : prefill_rows) +=
        static_cast<int>(step.tokens.size());
    fails |= std::find(step.tokens.begin(), step.tokens.end(),
                       options_.poison) != step.tokens.end();
  }
  Advance(options_.base_ms + decode_rows * options_.decode_row_ms +
          prefill_rows * options_.prefill_row_ms);
  if (fails) {
    ++n_failed_;
    return {Code::kIo, "a page of the model is not readable"};
  }
  for (const SequenceStep& step : steps) {
    auto& sequence = static_cast<FakeSequence&>(*step.sequence);
    if (options_.budget_blocks > 0) {
      EXPECT_GE(sequence.promised_,
                sequence.BlocksMissing(sequence.n_tokens() +
                                       static_cast<int>(step.tokens.size())))
          << "a pass is reserved whole";
    }
    n_computed_ += step.tokens.size();
    sequence.Append(step.tokens);
  }
  return {};
}

void FakeEngine::Advance(double ms) {
  now_ += ms;
  while (!queue_.empty() && queue_.front().done_ms <= now_) {
    const bool lost =
        std::uniform_real_distribution<>()(rng_) < options_.save_fault;
    if (!lost) stored_.insert(queue_.front().block->id);
    queue_.pop_front();
  }
}

TEST(FakeEngine, CountsWhatSequencesHold) {
  FakeEngine engine({.budget_blocks = 4}, 1);
  auto a = *engine.NewSequence("");
  const std::vector<std::int32_t> ids(40, 3);
  ASSERT_TRUE(a->Attach(ids, nullptr, {}).ok());
  ASSERT_TRUE(a->Reserve(40, Relief::kFree).ok());
  EXPECT_EQ(engine.promised_blocks(), 3);
  const SequenceStep step{a.get(), ids, StepLogits::kLast};
  ASSERT_TRUE(engine.Step({&step, 1}).ok());
  EXPECT_EQ(engine.held_blocks(), 3);
  auto b = *engine.NewSequence("");
  EXPECT_EQ(b->Attach(ids, nullptr, {})->reused_tokens, 32);
  EXPECT_EQ(engine.held_blocks(), 3) << "full blocks are common";
  EXPECT_FALSE(b->Reserve(80, Relief::kResting).ok());
  ASSERT_TRUE(a->TryPersist(false));
  a->Rest();
  engine.Advance(100);
  EXPECT_TRUE(b->Reserve(80, Relief::kFree).ok());
  EXPECT_EQ(engine.held_blocks(), 1) << "a's tail; the rest is mapped";
}

}  // namespace hearth::serve
