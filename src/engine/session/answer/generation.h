// An answer in progress (hearth/engine.h), over one session.
#pragma once

#include <memory>
#include <optional>

#include "engine/session/answer/emitter.h"
#include "engine/session/session_core.h"
#include "hearth/engine.h"

namespace hearth {

class GenerationImpl final : public Generation {
 public:
  // kInvalidArgument for options that cannot be, or a session that has nothing
  // to continue.
  static Result<std::unique_ptr<GenerationImpl>> Begin(
      std::shared_ptr<SessionCore> session, const GenerateOptions& options,
      const Session::OnToken& on_token,
      const Session::Progress& on_draft_prefill);
  ~GenerationImpl() override;

  Result<std::span<const std::int32_t>> Next(int guesses_max) override;
  Result<int> Prepare(int n_tokens_max) override;
  GenerateReport Finish() override;

 private:
  GenerationImpl(std::shared_ptr<SessionCore> session,
                 const GenerateOptions& options,
                 const Session::OnToken& on_token,
                 const Session::Progress& on_draft_prefill,
                 std::unique_ptr<TokenConstraint> constraint);
  // Emits what the step after the last Next gave, once.
  Result<void> Take();
  Result<std::optional<std::int32_t>> Sampled();
  int n_room() const;
  Result<std::span<const std::int32_t>> Propose(std::int32_t id,
                                                int guesses_max);

  const std::shared_ptr<SessionCore> session_;
  const Session::Progress on_draft_prefill_;
  Emitter emitter_;
  bool taken_ = false;                   // since the last Next; then:
  std::optional<std::int32_t> sampled_;  // none: the answer is over
  std::int32_t newest_ = -1;             // sampled, not appended
  std::size_t n_proposed_ = 0;  // tokens that Next gave; 0: not called yet
  int n_expected_ = 0;          // the history's tokens after their step
  bool over_ = false;
};

}  // namespace hearth
