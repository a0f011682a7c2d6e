#include "hearth/engine.h"

#include <algorithm>
#include <new>
#include <utility>

#include "base/time_limit.h"
#include "cache/states/state_layout.h"
#include "engine/describe.h"
#include "engine/engine_core.h"
#include "engine/session/prefix_match.h"
#include "engine/session/session_core.h"
#include "engine/text/tokenizer_factory.h"

namespace hearth {
namespace {

static_assert(Engine::kStepTokensMax == Forward::kStepTokensMax);

LogitRows RowsFor(StepLogits want) {
  switch (want) {
    case StepLogits::kNone:
      return LogitRows::kNone;
    case StepLogits::kLast:
      return LogitRows::kLast;
    case StepLogits::kAll:
      break;
  }
  return LogitRows::kAll;
}

}  // namespace

Result<std::unique_ptr<Engine>> Engine::Open(const EngineOptions& options,
                                             const OnRead& on_read) {
  try {
    HEARTH_ASSIGN(std::shared_ptr<EngineCore> core,
                  OpenCore(options, {}, on_read));
    HEARTH_ASSIGN(core->draft, OpenDraftSource(*core));
    if (core->draft != nullptr && core->draft->needs_hidden()) {
      core->steps->KeepHidden();
    }
    return std::unique_ptr<Engine>(new Engine(std::move(core)));
  } catch (const std::bad_alloc&) {
    return Error{Code::kResourceFull,
                 options.model_path +
                     ": the machine has no memory left to open it; end other "
                     "programs, or use a smaller model"};
  }
}

Engine::Engine(std::shared_ptr<EngineCore> core)
    : core_(std::move(core)),
      codec_(MakeTextCodec(core_->tokenizer)),
      info_(Describe(core_->model)) {
  info_.tokenizer = codec_->Describe();
}

Engine::~Engine() = default;

const EngineOptions& Engine::options() const { return core_->options; }
const DeviceReport& Engine::device() const { return core_->device; }
int Engine::context_tokens() const { return core_->kv.context_tokens(); }

Result<std::unique_ptr<Session>> Engine::NewSession(
    const SessionOptions& options) {
  HEARTH_ASSIGN(auto session, SessionCore::Make(core_, options));
  return std::unique_ptr<Session>(new Session(std::move(session)));
}

PrefixMatch Engine::Match(std::span<const std::int32_t> tokens, int n_held,
                          const std::string& key_space) {
  PrefixMatch match;
  if (core_->prompt_cache == nullptr ||
      n_held >= static_cast<int>(tokens.size())) {
    return match;
  }
  match.found_ = std::make_unique<PrefixMatch::Found>(PrefixMatch::Found{
      core_.get(), FindPrefix(*core_->prompt_cache, key_space, core_->kv.spec(),
                              tokens, n_held)});
  return match;
}

Result<void> Engine::Step(std::span<const SessionStep> steps) {
  std::vector<SessionCoreStep> wanted;
  for (const SessionStep& step : steps) {
    if (step.session == nullptr) {
      return {Code::kInvalidArgument, "a step without a session"};
    }
    SessionCore* session = step.session->core_.get();
    if (&session->engine() != core_.get()) {
      return {Code::kInvalidArgument, "a step of another engine's session"};
    }
    for (const SessionCoreStep& other : wanted) {
      if (other.session == session) {
        return {Code::kInvalidArgument, "a session is in a step once only"};
      }
    }
    wanted.push_back({session, step.tokens, RowsFor(step.want)});
  }
  std::vector<SessionCore::Visit> visits;
  visits.reserve(wanted.size());
  for (const SessionCoreStep& step : wanted) {
    HEARTH_ASSIGN(auto visit, SessionCore::Visit::Enter(*step.session));
    visits.push_back(std::move(visit));
  }
  return SessionCore::StepAll(*core_, wanted);
}

bool Engine::carries_states() const { return !core_->kv.spec().states.empty(); }

bool Engine::CanHold(int n_tokens) const {
  const std::uint64_t bytes_max = core_->options.kv_ram_budget_bytes;
  if (core_->kv.pool() == nullptr || bytes_max == 0) return true;
  const KvSpec& spec = core_->kv.spec();
  // Stored blocks of it can be mapped: what is being computed must fit.
  const int n_most = core_->prompt_cache != nullptr
                         ? std::min(n_tokens, kStepTokensMax)
                         : n_tokens;
  const int n_blocks =
      std::min((n_most + spec.block_tokens - 1) / spec.block_tokens,
               core_->kv.n_blocks());
  // The states before a step, after it, and room to go back in it.
  const std::uint64_t states = 3 * StateLayout(spec.states).bytes();
  return spec.full_block_bytes() * static_cast<std::uint64_t>(n_blocks) +
             states <=
         bytes_max;
}

SaveReport Engine::Saves() const {
  const PromptCache* cache = core_->prompt_cache.get();
  if (cache == nullptr) return {};
  return {.waiting_bytes = cache->waiting_bytes(),
          .n_written = cache->n_done(),
          .n_lost = cache->n_lost()};
}

std::optional<std::uint64_t> Engine::StoredBytes() const {
  const PromptCache* cache = core_->prompt_cache.get();
  return cache == nullptr ? std::nullopt : cache->stored_bytes();
}

KvMemory Engine::MemoryInUse() const {
  if (core_->kv.pool() == nullptr) return {};
  const PoolUsage usage = core_->kv.pool()->Usage();
  return {.held_bytes = usage.held_bytes,
          .state_bytes = usage.state_bytes,
          .mapped_bytes = usage.mapped_bytes};
}

Result<std::vector<float>> Engine::Logits(std::span<const std::int32_t> tokens,
                                          std::span<const int> steps) {
  History history(core_->kv.NewSequence());
  std::vector<float> logits;
  std::size_t step_index = 0;
  for (std::size_t at = 0; at < tokens.size();) {
    int step = kStepTokensMax;
    if (!steps.empty()) {
      step = steps[std::min(step_index++, steps.size() - 1)];
    }
    if (step < 1 || step > kStepTokensMax) {
      return {Code::kInvalidArgument,
              "chunk sizes must be 1 to " + std::to_string(kStepTokensMax)};
    }
    const std::size_t n =
        std::min(tokens.size() - at, static_cast<std::size_t>(step));
    const StepItem item{&history, tokens.subspan(at, n), LogitRows::kAll};
    HEARTH_TRY(core_->steps->Run({&item, 1}));
    const auto rows = history.AllLogits();
    logits.insert(logits.end(), rows.begin(), rows.end());
    at += n;
  }
  return logits;
}

PromptIds Engine::PreferStoredIds(std::vector<std::int32_t> ids) {
  if (core_->prompt_cache == nullptr) return {std::move(ids), 0};
  return core_->prompt_cache->PreferStored(core_->kv.spec(), *core_->tokenizer,
                                           std::move(ids));
}

Result<void> Engine::DrainSaves(double seconds_max) {
  if (core_->prompt_cache == nullptr) return {};
  const TimeLimit limit(seconds_max);
  const auto drained = core_->prompt_cache->Drain(limit.Left());
  // Also after an error: what the draft model has may be kept all the same.
  const auto of_draft = core_->draft == nullptr
                            ? Result<void>()
                            : core_->draft->DrainSaves(limit.Left());
  return drained.ok() ? of_draft : drained;
}

}  // namespace hearth
