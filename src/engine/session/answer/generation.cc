#include "engine/session/answer/generation.h"

#include <utility>

namespace hearth {

GenerationImpl::GenerationImpl(std::shared_ptr<SessionCore> session,
                               const GenerateOptions& options,
                               const Session::OnToken& on_token,
                               const Session::Progress& on_draft_prefill,
                               std::unique_ptr<TokenConstraint> constraint)
    : session_(std::move(session)),
      on_draft_prefill_(on_draft_prefill),
      emitter_(*session_->engine().tokenizer, options, on_token,
               std::move(constraint)) {
  if (session_->engine().draft != nullptr) {
    emitter_.speculation().drafter = session_->engine().draft->Describe();
  }
}

Result<std::unique_ptr<GenerationImpl>> GenerationImpl::Begin(
    std::shared_ptr<SessionCore> session, const GenerateOptions& options,
    const Session::OnToken& on_token,
    const Session::Progress& on_draft_prefill) {
  HEARTH_TRY(CheckGenerate(options, session->engine().model.config.vocab_size));
  HEARTH_ASSIGN(auto constraint, NewConstraint(options));
  HEARTH_ASSIGN(const auto visit, SessionCore::Visit::Enter(*session));
  if (session->history().Logits().empty()) {
    return {Code::kInvalidArgument, "nothing to continue: call Sync first"};
  }
  return std::unique_ptr<GenerationImpl>(
      new GenerationImpl(std::move(session), options, on_token,
                         on_draft_prefill, std::move(constraint)));
}

GenerationImpl::~GenerationImpl() {
  const auto visit = SessionCore::Visit::Enter(*session_);
  if (visit.ok()) session_->Rest();
}

Result<void> GenerationImpl::Take() {
  if (taken_) return {};
  HEARTH_ASSIGN(sampled_, Sampled());
  taken_ = true;
  return {};
}

int GenerationImpl::n_room() const {
  return session_->engine().kv.context_tokens() -
         session_->history().n_tokens();
}

Result<std::optional<std::int32_t>> GenerationImpl::Sampled() {
  History& history = session_->history();
  if (n_proposed_ == 0) {
    if (emitter_.n_left() <= 0) {
      session_->saves().SavePrompt(history);
      return std::optional<std::int32_t>();
    }
    const auto first = emitter_.Next(history.Logits(), history.tokens());
    // Off the critical path: the first token is out.
    session_->saves().SavePrompt(history);
    return first;
  }
  if (history.n_tokens() != n_expected_ ||
      history.n_logits() != static_cast<int>(n_proposed_)) {
    return {Code::kInvalidArgument,
            "the answer's next tokens were not appended, or not with all their "
            "logits"};
  }
  if (session_->speculation() != nullptr) {
    const auto next = session_->speculation()->Verify(history, emitter_);
    session_->AfterToken();
    return next;
  }
  session_->AfterToken();
  return emitter_.Next(history.Logits(), history.tokens());
}

Result<std::span<const std::int32_t>> GenerationImpl::Propose(std::int32_t id,
                                                              int guesses_max) {
  newest_ = id;
  if (n_room() <= 0) {
    emitter_.StopForContext();
    return std::span<const std::int32_t>();
  }
  if (session_->speculation() == nullptr) {
    return std::span<const std::int32_t>(&newest_, 1);
  }
  auto tokens = session_->speculation()->Propose(
      id, emitter_.options().speculate ? guesses_max : 0, n_room(),
      session_->history(), on_draft_prefill_, emitter_);
  if (!tokens.ok() && tokens.error().code == Code::kCancelled) {
    emitter_.StopForCaller();
    return std::span<const std::int32_t>();
  }
  return tokens;
}

Result<std::span<const std::int32_t>> GenerationImpl::Next(int guesses_max) {
  if (over_) return std::span<const std::int32_t>();
  HEARTH_ASSIGN(const auto visit, SessionCore::Visit::Enter(*session_));
  HEARTH_TRY(Take());
  std::span<const std::int32_t> tokens;
  if (sampled_.has_value()) {
    HEARTH_ASSIGN(tokens, Propose(*sampled_, guesses_max));
  }
  taken_ = false;
  over_ = tokens.empty();
  n_proposed_ = tokens.size();
  n_expected_ = session_->history().n_tokens() + static_cast<int>(n_proposed_);
  return tokens;
}

Result<int> GenerationImpl::Prepare(int n_tokens_max) {
  if (over_) return 0;
  HEARTH_ASSIGN(const auto visit, SessionCore::Visit::Enter(*session_));
  HEARTH_TRY(Take());
  if (!sampled_.has_value() || session_->speculation() == nullptr ||
      !emitter_.options().speculate) {
    return 0;
  }
  return session_->speculation()->Read(*sampled_, n_tokens_max, n_room(),
                                       session_->history(), emitter_);
}

GenerateReport GenerationImpl::Finish() {
  over_ = true;
  return emitter_.Finish();
}

}  // namespace hearth
