#include "model/draft_heads.h"

#include <utility>

#include "engine/draft/drafter.h"
#include "engine/session.h"
#include "formats/tinygpt/heads_file.h"

namespace hearth {
namespace {

// Has no state of its own: sessions share it.
class HeadsDrafter final : public Drafter {
 public:
  // `runner` outlives the object.
  explicit HeadsDrafter(DraftHeadsRunner& runner) : runner_(runner) {}

  bool needs_hidden() const override { return true; }
  Result<void> Propose(const DraftRequest& request,
                       std::vector<DraftToken>& drafts) override {
    guesses_.clear();
    HEARTH_TRY(runner_.Guess(request.hidden, request.tokens.back(),
                             request.n_tokens_max, guesses_));
    for (const std::int32_t id : guesses_) drafts.push_back({id});
    return {};
  }
  Result<std::unique_ptr<Drafter>> Fork() override {
    return std::unique_ptr<Drafter>(std::make_unique<HeadsDrafter>(runner_));
  }

 private:
  DraftHeadsRunner& runner_;
  std::vector<std::int32_t> guesses_;
};

class HeadsSource final : public DraftSource {
 public:
  HeadsSource(DraftHeads heads, EngineParts& target)
      : heads_(std::move(heads)), runner_(heads_, target.model, *target.pool) {}

  std::string Describe() const override {
    return heads_.kind == DraftHeadsKind::kMedusa ? "Medusa heads"
                                                  : "EAGLE heads";
  }
  Result<std::unique_ptr<Drafter>> NewDrafter() override {
    return std::unique_ptr<Drafter>(std::make_unique<HeadsDrafter>(runner_));
  }

 private:
  DraftHeads heads_;
  DraftHeadsRunner runner_;
};

}  // namespace

Result<std::unique_ptr<DraftSource>> OpenDraftHeads(EngineParts& target) {
  HEARTH_ASSIGN(DraftHeads heads,
                LoadDraftHeads(target.options.draft, target.model.config));
  return std::unique_ptr<DraftSource>(
      std::make_unique<HeadsSource>(std::move(heads), target));
}

}  // namespace hearth
