#include "model/draft_heads.h"

#include <utility>

#include "engine/draft/drafter.h"
#include "engine/engine_core.h"
#include "formats/tinygpt/heads_file.h"

namespace hearth {
namespace {

// The runner and the workers that it computes on, for sessions of any thread.
class SharedRunner {
 public:
  // `model` outlives the object.
  SharedRunner(DraftHeads heads, const LoadedModel& model,
               std::shared_ptr<Workers> workers)
      : heads_(std::move(heads)),
        workers_(std::move(workers)),
        runner_(heads_, model, workers_->pool) {}

  DraftHeadsKind kind() const { return heads_.kind; }
  Result<void> Guess(const DraftRequest& request,
                     std::vector<std::int32_t>& guesses) {
    const MutexLock turn(workers_->turn);
    return runner_.Guess(request.hidden, request.tokens.back(),
                         request.n_tokens_max, guesses);
  }

 private:
  const DraftHeads heads_;
  const std::shared_ptr<Workers> workers_;
  DraftHeadsRunner runner_ HEARTH_GUARDED_BY(workers_->turn);
};

class HeadsDrafter final : public Drafter {
 public:
  // `runner` outlives the object.
  explicit HeadsDrafter(SharedRunner& runner) : runner_(runner) {}

  Result<void> Propose(const DraftRequest& request,
                       std::vector<DraftToken>& drafts) override {
    guesses_.clear();
    HEARTH_TRY(runner_.Guess(request, guesses_));
    for (const std::int32_t id : guesses_) drafts.push_back({id});
    return {};
  }
  Result<std::unique_ptr<Drafter>> Fork() override {
    return std::unique_ptr<Drafter>(std::make_unique<HeadsDrafter>(runner_));
  }

 private:
  SharedRunner& runner_;
  std::vector<std::int32_t> guesses_;
};

class HeadsSource final : public DraftSource {
 public:
  HeadsSource(DraftHeads heads, const EngineCore& target)
      : runner_(std::move(heads), target.model, target.workers) {}

  std::string Describe() const override {
    return runner_.kind() == DraftHeadsKind::kMedusa ? "Medusa heads"
                                                     : "EAGLE heads";
  }
  bool needs_hidden() const override { return true; }
  Result<std::unique_ptr<Drafter>> NewDrafter(const SessionOptions&) override {
    return std::unique_ptr<Drafter>(std::make_unique<HeadsDrafter>(runner_));
  }

 private:
  SharedRunner runner_;
};

}  // namespace

Result<std::unique_ptr<DraftSource>> OpenDraftHeads(EngineCore& target) {
  HEARTH_ASSIGN(DraftHeads heads,
                LoadDraftHeads(target.options.draft, target.model.config));
  return std::unique_ptr<DraftSource>(
      std::make_unique<HeadsSource>(std::move(heads), target));
}

}  // namespace hearth
