#include "engine/session/session_core.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/states/state_plan.h"

namespace hearth {
namespace {

Result<void> CheckIds(std::span<const std::int32_t> tokens, int vocab_size) {
  for (const std::int32_t id : tokens) {
    if (id < 0 || id >= vocab_size) {
      return {Code::kInvalidArgument,
              "token id " + std::to_string(id) +
                  " is outside the model's vocabulary of " +
                  std::to_string(vocab_size)};
    }
  }
  return {};
}

}  // namespace

SessionCore::SessionCore(std::shared_ptr<EngineCore> engine, History history,
                         const SessionOptions& options)
    : engine_(std::move(engine)),
      history_(std::move(history)),
      saves_(engine_->prompt_cache.get(), engine_->options, *engine_->tokenizer,
             options, StateGrid(engine_->kv.spec())) {
  engine_->ram->Add(*this);
}

SessionCore::~SessionCore() { engine_->ram->Remove(*this); }

Result<std::shared_ptr<SessionCore>> SessionCore::Make(
    std::shared_ptr<EngineCore> engine, const SessionOptions& options) {
  std::shared_ptr<SessionCore> session(
      new SessionCore(engine,
                      History(engine->kv.NewSequence(),
                              RootIn(engine->chain_root, options.key_space)),
                      options));
  if (engine->draft != nullptr) {
    HEARTH_ASSIGN(auto drafter, engine->draft->NewDrafter(options));
    session->speculation_ = std::make_unique<Speculation>(
        std::move(drafter), engine->options.draft_tokens);
  }
  return session;
}

Result<SessionCore::Visit> SessionCore::Visit::Enter(SessionCore& session) {
  if (!session.use_.Enter()) {
    return {Code::kInvalidArgument,
            "the session is in use by another thread; one thread at a time may "
            "call it"};
  }
  return Visit(&session);
}

SessionCore::Visit::~Visit() {
  if (session_ == nullptr) return;
  RamBudget& ram = *session_->engine_->ram;
  if (ram.has_limit() && session_->use_.outermost() && !session_->keeps_room_) {
    // What it was promised and has not taken is everybody's again.
    (void)session_->history_.kv().Reserve(0);
    session_->room_tokens_ = 0;
  }
  session_->use_.Leave();
}

Result<void> SessionCore::CheckPrompt(
    std::span<const std::int32_t> tokens) const {
  if (tokens.empty()) {
    return {Code::kInvalidArgument,
            "the prompt is empty; give at least one token of text"};
  }
  const int context_tokens = engine_->kv.context_tokens();
  if (tokens.size() > static_cast<std::size_t>(context_tokens)) {
    return {Code::kResourceFull, "the prompt has " +
                                     std::to_string(tokens.size()) +
                                     " tokens and the context holds " +
                                     std::to_string(context_tokens) +
                                     "; shorten it or choose a larger context"};
  }
  return CheckIds(tokens, engine_->model.config.vocab_size);
}

Result<void> SessionCore::CheckStep(const SessionCoreStep& step) const {
  if (step.tokens.empty()) {
    return {Code::kInvalidArgument, "a step of a session without tokens"};
  }
  HEARTH_TRY(CheckIds(step.tokens, engine_->model.config.vocab_size));
  const std::size_t n_after =
      static_cast<std::size_t>(history_.n_tokens()) + step.tokens.size();
  if (n_after > static_cast<std::size_t>(engine_->kv.context_tokens())) {
    return {Code::kResourceFull,
            "the session would have " + std::to_string(n_after) +
                " tokens and the context holds " +
                std::to_string(engine_->kv.context_tokens())};
  }
  return {};
}

Result<void> SessionCore::StepAll(EngineCore& engine,
                                  std::span<const SessionCoreStep> steps) {
  std::size_t n_tokens = 0;
  for (const SessionCoreStep& step : steps) {
    HEARTH_TRY(step.session->CheckStep(step));
    n_tokens += step.tokens.size();
  }
  if (n_tokens > Forward::kStepTokensMax) {
    return {Code::kInvalidArgument,
            "a step of " + std::to_string(n_tokens) + " tokens; one takes " +
                std::to_string(Forward::kStepTokensMax) + " at most"};
  }
  std::vector<StepItem> items;
  for (const SessionCoreStep& step : steps) {
    History& history = step.session->history_;
    HEARTH_TRY(step.session->MakeRoom(
        history.n_tokens() + static_cast<int>(step.tokens.size()),
        Relief::kWait));
    items.push_back({&history, step.tokens, step.want});
  }
  for (const SessionCoreStep& step : steps) step.session->keeps_room_ = false;
  HEARTH_TRY(engine.steps->Run(items));
  for (const SessionCoreStep& step : steps) {
    step.session->in_progress_ = true;
    step.session->AfterStep(step.want);
  }
  return {};
}

void SessionCore::AfterStep(LogitRows want) {
  history_.Publish();
  // What guesses have led to is not kept before it is known to be right.
  if (has_states() && want != LogitRows::kAll) {
    if (std::binary_search(stops_.begin(), stops_.end(), history_.n_tokens()) ||
        saves_.WantsState(history_)) {
      KeepHere();
    }
  }
  saves_.AfterStep(history_);
}

void SessionCore::AfterToken() {
  if (has_states() && saves_.WantsState(history_)) KeepHere();
}

Result<void> SessionCore::Step(std::span<const std::int32_t> tokens,
                               LogitRows want) {
  const SessionCoreStep step{this, tokens, want};
  return StepAll(*engine_, {&step, 1});
}

Result<void> SessionCore::Rewind(int n_tokens) {
  if (n_tokens < 0 || n_tokens > history_.n_tokens()) {
    return {Code::kInvalidArgument,
            "cannot rewind to " + std::to_string(n_tokens) + " of " +
                std::to_string(history_.n_tokens()) + " tokens"};
  }
  if (history_.RewindableTo(n_tokens) != n_tokens) {
    // Some of it is gone, quantised or let go of: from the store or computed
    // once more.
    const auto kept =
        history_.tokens().first(static_cast<std::size_t>(n_tokens));
    HEARTH_TRY(
        Sync(std::vector<std::int32_t>(kept.begin(), kept.end()), nullptr));
    history_.ForgetLogits();
  } else {
    history_.Rewind(n_tokens);
    saves_.NoteRewound(n_tokens);
  }
  saves_.ForgetPrompt();
  stops_.clear();
  Rest();
  return {};
}

Result<std::shared_ptr<SessionCore>> SessionCore::Fork() const {
  HEARTH_ASSIGN(History history, history_.Fork());
  std::shared_ptr<SessionCore> fork(
      new SessionCore(engine_, std::move(history), {}));
  fork->saves_ = saves_.Fork();
  fork->stops_ = stops_;
  fork->in_progress_ = in_progress_;
  if (speculation_ != nullptr) {
    HEARTH_ASSIGN(fork->speculation_, speculation_->Fork());
  }
  return fork;
}

void SessionCore::Persist() {
  if (has_states()) KeepHere();
  (void)saves_.SaveAll(history_, /*may_wait=*/true, /*rests=*/true);
  if (speculation_ != nullptr) speculation_->drafter().Persist();
}

bool SessionCore::TryPersist(bool rests) {
  if (has_states() && rests) KeepHere();
  if (!saves_.SaveAll(history_, /*may_wait=*/false, rests)) return false;
  if (speculation_ != nullptr) speculation_->drafter().Persist();
  return true;
}

bool SessionCore::TryClaim() {
  if (!use_.TryClaim()) return false;
  if (!in_progress_) return true;
  use_.Unclaim();
  return false;
}

void SessionCore::Store() {
  Persist();
  // Blocks that wait to be written still take memory.
  if (engine_->prompt_cache != nullptr) engine_->prompt_cache->WaitForWriter();
}

void SessionCore::ExchangeStored() {
  const std::span<const Digest> ids = history_.BlockIds();
  PromptCache* cache = engine_->prompt_cache.get();
  if (cache == nullptr || ids.empty()) return;
  const auto n_full = static_cast<int>(ids.size());
  int first = 0;  // that takes memory
  while (first < n_full && history_.kv().IsMapped(first)) ++first;
  if (first == n_full) return;
  // A look reads all that is stored: only when there may be something new.
  const std::uint64_t n_done = cache->n_done();
  if (exchanged_at_ == n_done) return;
  exchanged_at_ = n_done;
  StoreMatch match = cache->MapStored(
      saves_.key_space(), engine_->kv.spec(),
      history_.tokens().first(
          ids.size() *
          static_cast<std::size_t>(engine_->kv.spec().block_tokens)));
  for (std::size_t i = static_cast<std::size_t>(first);
       i < std::min(ids.size(), match.blocks.size()); ++i) {
    StoredBlock& block = match.blocks[i];
    // What had to be copied to be read would take as much memory.
    if (!block.is_mapped || block.n_tokens < engine_->kv.spec().block_tokens) {
      continue;
    }
    history_.kv().Exchange(static_cast<int>(i), ids[i], block.payload,
                           std::move(block.owner));
  }
}

void SessionCore::LetGo() {
  history_.Rewind(0);
  saves_.NoteRewound(0);
  saves_.ForgetPrompt();
  stops_.clear();
}

Result<void> SessionCore::Reserve(int n_tokens, Relief relief) {
  HEARTH_TRY(MakeRoom(n_tokens, relief));
  keeps_room_ = true;
  return {};
}

Result<void> SessionCore::MakeRoom(int n_tokens, Relief relief) {
  RamBudget& ram = *engine_->ram;
  if (!ram.has_limit()) return {};
  // What was promised before still is, and what a window has given back since.
  n_tokens = std::max(room_tokens_, n_tokens);
  HEARTH_TRY(ram.MakeRoom(*this, n_tokens, relief));
  room_tokens_ = n_tokens;
  return {};
}

KvReport SessionCore::Usage() const {
  const KvUsage usage = history_.kv().Usage();
  return {.tokens = history_.n_tokens(),
          .saved_tokens = std::min(saves_.n_stored(), history_.n_tokens()),
          .logical_bytes = usage.logical_bytes,
          .physical_bytes = usage.physical_bytes,
          .mapped_bytes = usage.mapped_bytes,
          .shared_bytes = usage.shared_bytes,
          .state_bytes = usage.state_bytes,
          .kept_states = static_cast<int>(history_.kv().KeptStates().size()),
          .populated_layers = usage.populated_layers,
          .kv_layers = engine_->kv.spec().n_layers()};
}

}  // namespace hearth
