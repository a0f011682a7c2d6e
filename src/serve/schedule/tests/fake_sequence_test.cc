#include "serve/schedule/tests/fake_engine_testing.h"

namespace hearth::serve {
namespace {

class FakeGeneration final : public Generation {
 public:
  FakeGeneration(FakeEngine& engine, FakeSequence& sequence,
                 const GenerateOptions& options, Session::OnToken on_token)
      : engine_(engine),
        sequence_(sequence),
        options_(options),
        on_token_(std::move(on_token)),
        prompt_(sequence.tokens()),
        unread_(engine.options().draft_row_ms > 0
                    ? static_cast<int>(prompt_.size())
                    : 0) {}

  Result<int> Prepare(int n_tokens_max) override {
    Take();
    if (over_) return 0;
    const int n = std::min(n_tokens_max, unread_);
    if (n > 0) engine_.Advance(n * engine_.options().draft_row_ms);
    unread_ -= n;
    return unread_;
  }
  Result<std::span<const std::int32_t>> Next(int guesses_max) override {
    Take();
    taken_ = false;
    next_.clear();
    if (over_) return std::span<const std::int32_t>();
    EXPECT_EQ(unread_, 0) << "others wait while a draft model reads";
    next_.assign(1, answer_.back());
    const int room =
        options_.n_tokens_max - static_cast<int>(answer_.size()) - 1;
    const int n = std::min({engine_.options().guesses, guesses_max, room});
    for (int i = 0; i < n; ++i) {
      const std::int32_t right = Ahead(i);
      next_.push_back(Mix(static_cast<std::uint64_t>(right), 5) % 3 == 0
                          ? right + 1
                          : right);
    }
    return std::span<const std::int32_t>(next_);
  }
  GenerateReport Finish() override {
    GenerateReport report;
    report.token_ids = answer_;
    return report;
  }

 private:
  using TokenIds = std::vector<std::int32_t>;
  std::int32_t Ahead(int ahead) const {
    return FakeToken(prompt_, options_.sampling.seed,
                     static_cast<int>(answer_.size()) + ahead);
  }
  bool Emit() {
    answer_.push_back(Ahead(0));
    const bool on = on_token_({.id = answer_.back()});
    return on && static_cast<int>(answer_.size()) < options_.n_tokens_max;
  }
  // What the step after the last Next gave, once.
  void Take() {
    if (taken_ || over_) return;
    taken_ = true;
    std::size_t n_right = 1;
    if (!next_.empty()) {
      // I1: the sequence holds the prompt, the answer, and what was proposed.
      TokenIds want = prompt_;
      want.insert(want.end(), answer_.begin(), answer_.end() - 1);
      want.insert(want.end(), next_.begin(), next_.end());
      EXPECT_EQ(sequence_.tokens(), want);
      while (n_right < next_.size() && next_[n_right] == Ahead(0)) {
        over_ = !Emit();
        if (over_) break;
        ++n_right;
      }
      sequence_.Truncate(sequence_.n_tokens() -
                         static_cast<int>(next_.size() - n_right));
    }
    over_ = over_ || options_.n_tokens_max == 0 || !Emit();
  }

  FakeEngine& engine_;
  FakeSequence& sequence_;
  const GenerateOptions options_;
  const Session::OnToken on_token_;
  const TokenIds prompt_;
  int unread_;  // by a draft model
  bool taken_ = false, over_ = false;
  TokenIds answer_, next_;
};

}  // namespace

std::int32_t FakeToken(std::span<const std::int32_t> prompt, std::uint64_t seed,
                       int i) {
  std::uint64_t h = Mix(seed, prompt.size());
  h = Mix(h, static_cast<std::uint64_t>(prompt.back()));
  return static_cast<std::int32_t>(Mix(h, static_cast<std::uint64_t>(i)) %
                                   1000);
}

FakeBlock::FakeBlock(FakeEngine& of, std::uint64_t with_id)
    : engine(of), id(with_id) {
  ++engine.n_held_;
}
FakeBlock::~FakeBlock() {
  if (!mapped) --engine.n_held_;
}
void FakeBlock::Map() {
  if (!mapped) --engine.n_held_;
  mapped = true;
}

FakeSequence::FakeSequence(FakeEngine& engine, std::uint64_t root)
    : engine_(engine), root_(root) {
  engine_.sequences_.push_back(this);
}
FakeSequence::~FakeSequence() {
  Truncate(0);
  Promise(0);
  std::erase(engine_.sequences_, this);
}

// The id of block `n_blocks` behind the blocks before it.
std::uint64_t FakeSequence::IdAfter(
    std::size_t n_blocks, std::span<const std::int32_t> tokens) const {
  const auto step = static_cast<std::size_t>(engine_.block_tokens());
  std::uint64_t id = n_blocks == 0 ? root_ : blocks_[n_blocks - 1]->id;
  for (const std::int32_t t : tokens.subspan(n_blocks * step, step)) {
    id = Mix(id, static_cast<std::uint64_t>(t));
  }
  return id;
}

int FakeSequence::CommonWith(std::span<const std::int32_t> tokens) const {
  return static_cast<int>(std::mismatch(tokens_.begin(), tokens_.end(),
                                        tokens.begin(), tokens.end())
                              .first -
                          tokens_.begin());
}

int FakeSequence::Held(std::span<const std::int32_t> tokens) {
  const auto step = static_cast<std::size_t>(engine_.block_tokens());
  std::uint64_t id = root_;
  std::size_t n = 0;
  while ((n + 1) * step <= tokens.size()) {
    for (const std::int32_t t : tokens.subspan(n * step, step)) {
      id = Mix(id, static_cast<std::uint64_t>(t));
    }
    if (engine_.Lookup(id) == nullptr) break;
    ++n;
  }
  return std::max(CommonWith(tokens), static_cast<int>(n * step));
}

Result<SyncReport> FakeSequence::Attach(std::span<const std::int32_t> tokens,
                                        std::unique_ptr<Found> found,
                                        std::span<const int>) {
  const auto step = static_cast<std::size_t>(engine_.block_tokens());
  const int common = CommonWith(tokens);
  n_handed_ = std::min(n_handed_, common);
  Truncate(common);
  const std::size_t n_most = (tokens.size() - 1) / step;
  // From the last full block on, as far as others or the store have them.
  for (std::size_t n = blocks_.size(); n < n_most; ++n) {
    const std::uint64_t id = IdAfter(n, tokens);
    FakeBlockPtr block = engine_.Lookup(id);
    if (block == nullptr && found != nullptr) {
      const auto& ids = static_cast<FakeFound&>(*found).ids;
      if (n < ids.size() && ids[n] == id) {
        block = engine_.Publish(id);
        block->Map();
      }
    }
    if (block == nullptr) break;
    Truncate(static_cast<int>(n * step));
    blocks_.push_back(std::move(block));
    const auto more = tokens.subspan(n * step, step);
    tokens_.insert(tokens_.end(), more.begin(), more.end());
  }
  Truncate(std::min(n_tokens(), static_cast<int>(tokens.size()) - 1));
  resting_ = false;
  return SyncReport{.prompt_tokens = static_cast<int>(tokens.size()),
                    .reused_tokens = n_tokens(),
                    .reuse_tier = "memory",
                    .miss_reason = {},
                    .warnings = {}};
}

int FakeSequence::BlocksMissing(int n_tokens) const {
  const int step = engine_.block_tokens();
  return (n_tokens + step - 1) / step - static_cast<int>(blocks_.size()) -
         (has_tail_ ? 1 : 0);
}

void FakeSequence::Promise(int n_blocks) {
  engine_.n_promised_ += n_blocks - promised_;
  promised_ = n_blocks;
}

Result<void> FakeSequence::Reserve(int n_tokens, Relief relief) {
  const int n = BlocksMissing(n_tokens);
  engine_.sequences_.remove(this);
  engine_.sequences_.push_back(this);
  const int before = promised_;
  Promise(0);
  if (engine_.Fits(n) || engine_.Relieve(*this, n, relief)) {
    Promise(n);
    return {};
  }
  Promise(before);
  return {Code::kResourceFull, "no memory"};
}

Result<std::unique_ptr<Generation>> FakeSequence::Begin(
    const GenerateOptions& options, const Session::OnToken& on_token) {
  return std::unique_ptr<Generation>(
      std::make_unique<FakeGeneration>(engine_, *this, options, on_token));
}

Result<std::unique_ptr<Sequence>> FakeSequence::Fork() {
  if (has_tail_ && !engine_.Fits(1)) {
    return {Code::kResourceFull, "no memory for a tail"};
  }
  auto fork = std::make_unique<FakeSequence>(engine_, root_);
  fork->tokens_ = tokens_;
  fork->blocks_ = blocks_;
  fork->old_block_ = old_block_;
  fork->SetTail();
  fork->resting_ = false;
  return std::unique_ptr<Sequence>(std::move(fork));
}

bool FakeSequence::TryPersist(bool) {
  if (!engine_.has_store()) return true;
  const auto step = static_cast<std::size_t>(engine_.block_tokens());
  const auto first = static_cast<std::size_t>(n_handed_) / step;
  if (blocks_.size() > first && !engine_.queue_.empty() &&
      static_cast<int>(engine_.queue_.size() + blocks_.size() - first) >
          engine_.options_.queue_blocks) {
    return false;
  }
  for (std::size_t n = first; n < blocks_.size(); ++n) {
    const double from =
        engine_.queue_.empty() ? engine_.now_ : engine_.queue_.back().done_ms;
    engine_.queue_.push_back({blocks_[n], from + engine_.options_.save_ms});
  }
  n_handed_ = n_tokens();
  return true;
}

void FakeSequence::Rest() {
  resting_ = true;
  Promise(0);
}

void FakeSequence::SetTail() {
  const auto step = static_cast<std::size_t>(engine_.block_tokens());
  const bool has =
      tokens_.size() > blocks_.size() * step && old_block_ == nullptr;
  engine_.n_held_ += static_cast<int>(has) - static_cast<int>(has_tail_);
  has_tail_ = has;
}

void FakeSequence::Truncate(int n_tokens) {
  if (n_tokens == this->n_tokens()) return;
  const auto step = engine_.block_tokens();
  const auto n_full = static_cast<std::size_t>(n_tokens / step);
  if (n_tokens % step == 0) {
    old_block_ = nullptr;
  } else if (n_full < blocks_.size()) {
    old_block_ = blocks_[n_full];
  }
  tokens_.resize(static_cast<std::size_t>(n_tokens));
  blocks_.resize(std::min(blocks_.size(), n_full));
  n_handed_ = std::min(n_handed_, n_tokens);
  SetTail();
}

void FakeSequence::Append(std::span<const std::int32_t> tokens) {
  Promise(0);
  old_block_ = nullptr;
  tokens_.insert(tokens_.end(), tokens.begin(), tokens.end());
  const auto step = static_cast<std::size_t>(engine_.block_tokens());
  while ((blocks_.size() + 1) * step <= tokens_.size()) {
    if (has_tail_) {
      // The tail becomes the block.
      has_tail_ = false;
      --engine_.n_held_;
    }
    blocks_.push_back(engine_.Publish(IdAfter(blocks_.size(), tokens_)));
  }
  SetTail();
}

TEST(FakeSequence, AForkSharesFullBlocksAlone) {
  FakeEngine engine({}, 1);
  auto sequence = *engine.NewSequence("");
  const std::vector<std::int32_t> ids(40, 3);
  const SequenceStep step{sequence.get(), ids, StepLogits::kLast};
  ASSERT_TRUE(engine.Step({&step, 1}).ok());
  EXPECT_EQ(engine.held_blocks(), 3);
  auto fork = *sequence->Fork();
  EXPECT_EQ(fork->tokens(), ids);
  EXPECT_EQ(engine.held_blocks(), 4) << "a tail of its own";
  sequence.reset();
  EXPECT_EQ(engine.held_blocks(), 3);
}

}  // namespace hearth::serve
