#include "model/mtp.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "cache/kv_sequence.h"
#include "engine/draft/drafter.h"
#include "engine/engine_core.h"
#include "engine/kv_setup.h"
#include "formats/mtp.h"

namespace hearth {
namespace {

// Pairs that the block attends to at most; then it begins anew.
constexpr int kPairsMax = 4096;

// The block, its sequences' memory and the workers that it computes on, for
// sessions of any thread.
class SharedBlock {
 public:
  // `target` outlives the object.
  static Result<std::unique_ptr<SharedBlock>> Make(MtpBlock block,
                                                   const EngineCore& target) {
    block.model.config.rope = target.model.config.rope;
    const KvSpec spec = SpecOf(block.model.config, KvFormat::kF32,
                               KvFormat::kF32, target.options.block_tokens);
    const int n_blocks =
        (kPairsMax + spec.block_tokens - 1) / spec.block_tokens;
    HEARTH_ASSIGN(auto pool, MakeKvPool(spec, {}, {.n_blocks = n_blocks}));
    return std::unique_ptr<SharedBlock>(
        new SharedBlock(std::move(block), target, spec, std::move(pool)));
  }

  std::unique_ptr<KvSequence> NewSequence() const {
    return MakeInPlaceSequence(pool_, spec_);
  }

  // Guesses that follow `token`, at most n. Every guess's pair is appended,
  // too, so that nothing is missing when all were right.
  Result<void> Guess(KvSequence& kv, std::span<const float> hidden,
                     std::int32_t token, int n,
                     std::vector<DraftToken>& drafts) {
    const MutexLock turn(workers_->turn);
    workers_->pool.UseThreads(workers_->n_for_tokens);
    for (int i = 0; i < n; ++i) {
      HEARTH_ASSIGN(token, runner_.Guess(kv, hidden, token));
      drafts.push_back({token});
      hidden_.assign(runner_.hidden().begin(), runner_.hidden().end());
      hidden = hidden_;
    }
    return runner_.Append(kv, hidden, token);
  }

 private:
  SharedBlock(MtpBlock block, const EngineCore& target, const KvSpec& spec,
              std::shared_ptr<BlockPool> pool)
      : spec_(spec),
        pool_(std::move(pool)),
        workers_(target.workers),
        runner_(std::move(block), target.model, workers_->pool) {}

  const KvSpec spec_;
  const std::shared_ptr<BlockPool> pool_;
  const std::shared_ptr<Workers> workers_;
  MtpRunner runner_ HEARTH_GUARDED_BY(workers_->turn);
  std::vector<float> hidden_ HEARTH_GUARDED_BY(workers_->turn);
};

class MtpDrafter final : public Drafter {
 public:
  // `block` outlives the object.
  MtpDrafter(SharedBlock& block, std::unique_ptr<KvSequence> kv)
      : block_(block), kv_(std::move(kv)) {}

  Result<void> Propose(const DraftRequest& request,
                       std::vector<DraftToken>& drafts) override {
    const auto n_history = static_cast<int>(request.tokens.size());
    if (request.hidden.empty() || n_history < 2) return {};
    const int n = std::min(request.n_tokens_max, kPairsMax - 2);
    Follow(request.tokens, n);
    const std::int32_t newest = request.tokens.back();
    const std::size_t n_before = drafts.size();
    // Of each pair its token; whatever fails, those that are there are known.
    const Result<void> guessed =
        block_.Guess(*kv_, request.hidden, newest, n, drafts);
    tokens_.push_back(newest);
    for (std::size_t i = n_before; i < drafts.size(); ++i) {
      tokens_.push_back(drafts[i].id);
    }
    tokens_.resize(static_cast<std::size_t>(kv_->n_tokens()));
    return guessed;
  }

  Result<std::unique_ptr<Drafter>> Fork() override {
    HEARTH_ASSIGN(auto kv, kv_->Fork());
    auto fork = std::make_unique<MtpDrafter>(block_, std::move(kv));
    fork->tokens_ = tokens_;
    fork->first_ = first_;
    return std::unique_ptr<Drafter>(std::move(fork));
  }

  std::uint64_t kv_physical_bytes() const override {
    return kv_->Usage().physical_bytes;
  }

 private:
  // What is there becomes the pairs right before the newest token, or nothing.
  // Pairs of guesses that were right have the block's own hidden states, not
  // the model's: near enough for guessing.
  void Follow(std::span<const std::int32_t> history, int n_to_come) {
    const int newest = static_cast<int>(history.size()) - 1;
    int n = 0;
    while (n < static_cast<int>(tokens_.size()) && first_ + n < newest &&
           tokens_[static_cast<std::size_t>(n)] ==
               history[static_cast<std::size_t>(first_ + n)]) {
      ++n;
    }
    const bool goes_on = first_ + n == newest && n + n_to_come + 1 <= kPairsMax;
    if (!goes_on) {
      n = 0;
      first_ = newest;
    }
    kv_->Rewind(n);
    tokens_.resize(static_cast<std::size_t>(n));
  }

  SharedBlock& block_;
  std::unique_ptr<KvSequence> kv_;
  std::vector<std::int32_t> tokens_;  // of each pair in kv_
  int first_ = 0;                     // where the first is in the history
};

class MtpSource final : public DraftSource {
 public:
  explicit MtpSource(std::unique_ptr<SharedBlock> block)
      : block_(std::move(block)) {}

  std::string Describe() const override { return "multi-token prediction"; }
  bool needs_hidden() const override { return true; }
  Result<std::unique_ptr<Drafter>> NewDrafter(const SessionOptions&) override {
    return std::unique_ptr<Drafter>(
        std::make_unique<MtpDrafter>(*block_, block_->NewSequence()));
  }

 private:
  std::unique_ptr<SharedBlock> block_;
};

}  // namespace

Result<std::unique_ptr<DraftSource>> OpenMtp(EngineCore& target) {
  HEARTH_ASSIGN(MtpBlock block, LoadMtp(target.options.model_path));
  HEARTH_ASSIGN(auto shared, SharedBlock::Make(std::move(block), target));
  return std::unique_ptr<DraftSource>(
      std::make_unique<MtpSource>(std::move(shared)));
}

}  // namespace hearth
