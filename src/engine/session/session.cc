// The public face of a session: who may enter, then the core.
#include <algorithm>
#include <utility>

#include "engine/session/answer/generation.h"
#include "engine/session/prefix_match.h"
#include "engine/session/session_core.h"
#include "hearth/engine.h"

namespace hearth {

PrefixMatch::PrefixMatch() = default;
PrefixMatch::~PrefixMatch() = default;
PrefixMatch::PrefixMatch(PrefixMatch&& other) noexcept = default;
PrefixMatch& PrefixMatch::operator=(PrefixMatch&& other) noexcept = default;
int PrefixMatch::n_tokens() const {
  return found_ == nullptr ? 0 : found_->prefix.match.end();
}

Session::Session(std::shared_ptr<SessionCore> core) : core_(std::move(core)) {}
Session::~Session() = default;

Result<SyncReport> Session::Sync(std::span<const std::int32_t> tokens,
                                 const Progress& progress,
                                 std::span<const int> marks) {
  HEARTH_ASSIGN(const auto visit, SessionCore::Visit::Enter(*core_));
  return core_->Sync(tokens, progress, marks);
}

Result<GenerateReport> Session::Generate(const GenerateOptions& options,
                                         const OnToken& on_token,
                                         const Progress& on_draft_prefill) {
  HEARTH_ASSIGN(const auto visit, SessionCore::Visit::Enter(*core_));
  HEARTH_ASSIGN(
      const auto answer,
      GenerationImpl::Begin(core_, options, on_token, on_draft_prefill));
  while (true) {
    HEARTH_ASSIGN(const auto tokens, answer->Next(Generation::kGuessesAtWill));
    if (tokens.empty()) return answer->Finish();
    HEARTH_TRY(core_->Step(tokens, LogitRows::kAll));
  }
}

Result<GenerateReport> Session::GenerateUncached(
    std::span<const std::int32_t> prompt, const GenerateOptions& options,
    const OnToken& on_token) {
  EngineCore& engine = core_->engine();
  HEARTH_TRY(CheckGenerate(options, engine.model.config.vocab_size));
  HEARTH_ASSIGN(auto constraint, NewConstraint(options));
  HEARTH_ASSIGN(const auto visit, SessionCore::Visit::Enter(*core_));
  HEARTH_TRY(core_->CheckPrompt(prompt));
  std::vector<std::int32_t> all(prompt.begin(), prompt.end());
  Emitter emitter(*engine.tokenizer, options, on_token, std::move(constraint));
  while (options.n_tokens_max > 0) {
    HEARTH_TRY(core_->Rewind(0));
    HEARTH_TRY(core_->Prefill(all, nullptr));
    const auto id = emitter.Next(core_->history().Logits(), all);
    if (!id.has_value()) break;
    if (all.size() >= static_cast<std::size_t>(engine.kv.context_tokens())) {
      emitter.StopForContext();
      break;
    }
    all.push_back(*id);
  }
  HEARTH_TRY(core_->Rewind(0));
  return emitter.Finish();
}

int Session::Held(std::span<const std::int32_t> tokens) const {
  const auto visit = SessionCore::Visit::Enter(*core_);
  return visit.ok() ? core_->Held(tokens) : 0;
}

Result<SyncReport> Session::Attach(std::span<const std::int32_t> tokens,
                                   PrefixMatch match,
                                   std::span<const int> marks) {
  HEARTH_ASSIGN(const auto visit, SessionCore::Visit::Enter(*core_));
  if (match.found_ == nullptr) return core_->Attach(tokens, {}, marks);
  if (match.found_->engine != &core_->engine()) {
    return {Code::kInvalidArgument,
            "the match is another engine's, whose KV may differ"};
  }
  return core_->Attach(tokens, std::move(match.found_->prefix), marks);
}

int Session::NextStop() const {
  const auto visit = SessionCore::Visit::Enter(*core_);
  return visit.ok() ? core_->NextStop() : 0;
}

bool Session::AddStop(int n_tokens) {
  const auto visit = SessionCore::Visit::Enter(*core_);
  return visit.ok() && core_->AddStop(n_tokens);
}

Result<std::unique_ptr<Generation>> Session::Begin(
    const GenerateOptions& options, const OnToken& on_token,
    const Progress& on_draft_prefill) {
  HEARTH_ASSIGN(auto answer, GenerationImpl::Begin(core_, options, on_token,
                                                   on_draft_prefill));
  return std::unique_ptr<Generation>(std::move(answer));
}

std::span<const float> Session::logits() const {
  const auto visit = SessionCore::Visit::Enter(*core_);
  return visit.ok() ? core_->history().AllLogits() : std::span<const float>();
}

Result<void> Session::Reserve(int n_tokens, Relief relief) {
  HEARTH_ASSIGN(const auto visit, SessionCore::Visit::Enter(*core_));
  return core_->Reserve(n_tokens, relief);
}

bool Session::TryPersist(bool rests) {
  const auto visit = SessionCore::Visit::Enter(*core_);
  return visit.ok() && core_->TryPersist(rests);
}

void Session::Rest() {
  const auto visit = SessionCore::Visit::Enter(*core_);
  if (visit.ok()) core_->Rest();
}

void Session::Finish() {
  const auto visit = SessionCore::Visit::Enter(*core_);
  if (!visit.ok()) return;
  core_->Persist();
  core_->Rest();
}

Result<void> Session::Rewind(int n_tokens) {
  HEARTH_ASSIGN(const auto visit, SessionCore::Visit::Enter(*core_));
  return core_->Rewind(n_tokens);
}

Result<std::unique_ptr<Session>> Session::Fork() {
  HEARTH_ASSIGN(const auto visit, SessionCore::Visit::Enter(*core_));
  HEARTH_ASSIGN(auto fork, core_->Fork());
  return std::unique_ptr<Session>(new Session(std::move(fork)));
}

void Session::Persist() {
  const auto visit = SessionCore::Visit::Enter(*core_);
  if (visit.ok()) core_->Persist();
}

std::vector<std::int32_t> Session::tokens() const {
  const auto visit = SessionCore::Visit::Enter(*core_);
  if (!visit.ok()) return {};
  const auto tokens = core_->history().tokens();
  return {tokens.begin(), tokens.end()};
}

int Session::n_tokens() const {
  const auto visit = SessionCore::Visit::Enter(*core_);
  return visit.ok() ? core_->history().n_tokens() : 0;
}

KvReport Session::Usage() const {
  const auto visit = SessionCore::Visit::Enter(*core_);
  return visit.ok() ? core_->Usage() : KvReport{};
}

}  // namespace hearth
