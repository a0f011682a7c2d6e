// How a session comes to hold a prompt: what memory and the store have of it,
// then steps for the rest.
#include <algorithm>
#include <string>
#include <utility>

#include "base/stopwatch.h"
#include "engine/session/session_core.h"
#include "engine/states/state_plan.h"

namespace hearth {
namespace {

// Tokens per prefill step: enough to amortise unpacking the weights, few enough
// for a lively progress bar and a prompt answer to a cancel.
constexpr int kPrefillStepDefault = 256;

}  // namespace

PrefixIds SessionCore::IdsOf(std::span<const std::int32_t> tokens) const {
  return {history_.chain_root(), tokens,
          FullBlockIds(history_.chain_root(), tokens,
                       engine_->kv.spec().block_tokens)};
}

int SessionCore::Held(std::span<const std::int32_t> tokens) const {
  const int n = history_.RewindableTo(history_.CommonWith(tokens));
  const KvPlan& plan = engine_->kv;
  if (plan.pool() == nullptr) return n;
  const int step = plan.spec().block_tokens;
  if (!has_states() && n + step > static_cast<int>(tokens.size())) return n;
  return std::max(n, HeldInMemory(plan, IdsOf(tokens)).n_tokens);
}

Result<SyncReport> SessionCore::Attach(std::span<const std::int32_t> tokens,
                                       FoundPrefix found,
                                       std::span<const int> marks) {
  HEARTH_TRY(CheckPrompt(tokens));
  if (!std::equal(found.tokens.begin(), found.tokens.end(), tokens.begin(),
                  tokens.begin() + static_cast<std::ptrdiff_t>(std::min(
                                       tokens.size(), found.tokens.size())))) {
    return {Code::kInvalidArgument,
            "the match is not of the prompt that it is attached to"};
  }
  SyncReport report;
  report.prompt_tokens = static_cast<int>(tokens.size());
  report.reuse_tier = "none";
  report.lookup_ms = found.lookup_ms;
  report.miss_reason = std::move(found.match.miss_reason);
  report.miss_kind = found.match.miss_kind;
  report.warnings = std::move(found.match.warnings);
  const int n_common = history_.CommonWith(tokens);
  int n_have = history_.RewindableTo(n_common);
  saves_.NoteRewound(n_common);
  if (n_have > 0) report.reuse_tier = "memory";
  n_have = Restore(tokens, std::move(found), n_have, report);
  n_prompt_ = report.prompt_tokens;
  saves_.BeginPrompt(n_prompt_);
  // The last token is always computed: its logits start the answer.
  report.reused_tokens =
      history_.RewindableTo(std::min(n_have, report.prompt_tokens - 1));
  if (report.reused_tokens == 0) report.reuse_tier = "none";
  history_.Rewind(report.reused_tokens);
  if (has_states()) PlanStops(tokens, marks, n_common, report);
  in_progress_ = true;
  return report;
}

// What memory or the store have, when that is more than the history's `n_have`.
// Gives how much the history has then.
int SessionCore::Restore(std::span<const std::int32_t> tokens,
                         FoundPrefix found, int n_have, SyncReport& report) {
  branch_ = found.match.first_token + found.match.n_tokens_in_blocks;
  const int n_found = found.match.end();
  // What stands before a match that begins later is in memory alone.
  const int n_stored = found.match.first_token == 0 ? n_found : 0;
  if (std::max(n_found, Held(tokens)) <= n_have) return n_have;
  const Stopwatch clock;
  const bool from_store = found.match.state.has_value();
  auto restored = RestoreKv(engine_->kv, IdsOf(tokens), std::move(found.match));
  if (!restored.ok()) {
    report.warnings.push_back("stored KV not used: " +
                              restored.error().message);
  } else if (const int n = restored->sequence->n_tokens(); n > n_have) {
    const bool stored_state = from_store && !restored->state_in_memory;
    report.reuse_tier =
        n > restored->n_shared_tokens || stored_state ? found.tier : "memory";
    history_.Replace(std::move(restored->sequence),
                     tokens.first(static_cast<std::size_t>(n)));
    history_.Publish();
    saves_.NoteRestored(std::min(n, n_stored), stored_state ? n : 0);
    if (has_states()) KeepHere();
    n_have = n;
  }
  report.lookup_ms += clock.ms();
  return n_have;
}

// Behind these tokens states are to be kept.
void SessionCore::PlanStops(std::span<const std::int32_t> tokens,
                            std::span<const int> marks, int n_common,
                            SyncReport& report) {
  std::vector<int> all = MarksAtControlTokens(*engine_->tokenizer, tokens);
  all.insert(all.end(), marks.begin(), marks.end());
  std::sort(all.begin(), all.end());
  int n_branch = std::max(n_common, branch_);
  if (engine_->kv.pool() != nullptr) {
    const PrefixIds ids = IdsOf(tokens);
    n_branch = std::max(n_branch, engine_->kv.pool()->CountHeld(ids.full) *
                                      engine_->kv.spec().block_tokens);
  }
  // A few tokens more than are there are no branch worth a step of its own.
  if (n_branch < report.reused_tokens + engine_->kv.spec().block_tokens) {
    n_branch = 0;
  }
  stops_ = PlanStates(engine_->kv.spec(),
                      {.n_have = report.reused_tokens,
                       .n_total = report.prompt_tokens,
                       .n_branch = n_branch,
                       .marks = all,
                       .at_blocks = !engine_->options.cache_remote.empty()});
  if (report.reused_tokens < report.prompt_tokens - 1 &&
      report.miss_reason.empty()) {
    report.miss_reason =
        "the model carries states from token to token, and of this prompt they "
        "are known behind token " +
        std::to_string(report.reused_tokens);
    report.miss_kind = MissKind::kState;
  }
}

int SessionCore::NextStop(int n_total) const {
  const auto next =
      std::upper_bound(stops_.begin(), stops_.end(), history_.n_tokens());
  return next == stops_.end() ? n_total : std::min(*next, n_total);
}

bool SessionCore::AddStop(int n_tokens) {
  if (!has_states()) return true;
  if (n_tokens <= history_.n_tokens()) return false;
  const auto at = std::lower_bound(stops_.begin(), stops_.end(), n_tokens);
  if (at == stops_.end() || *at != n_tokens) stops_.insert(at, n_tokens);
  return true;
}

void SessionCore::KeepHere() {
  StateCheckpointPtr here = history_.kv().KeepState();
  if (here == nullptr || engine_->kv.states() == nullptr) return;
  engine_->kv.states()->Publish(history_.EndId(), here);
}

Result<SyncReport> SessionCore::Find(std::span<const std::int32_t> tokens,
                                     std::span<const int> marks) {
  HEARTH_TRY(CheckPrompt(tokens));
  FoundPrefix found;
  const int n_have = Held(tokens);
  PromptCache* cache = engine_->prompt_cache.get();
  if (cache != nullptr && n_have < static_cast<int>(tokens.size())) {
    found = FindPrefix(*cache, saves_.key_space(), engine_->kv.spec(), tokens,
                       n_have);
  }
  return Attach(tokens, std::move(found), marks);
}

void SessionCore::NoteRead(int n_tokens, double ms) {
  if (engine_->prompt_cache == nullptr) return;
  engine_->prompt_cache->NotePrefill(n_tokens, ms);
}

Result<SyncReport> SessionCore::Sync(std::span<const std::int32_t> tokens,
                                     const Session::Progress& progress,
                                     std::span<const int> marks) {
  HEARTH_ASSIGN(SyncReport report, Find(tokens, marks));
  const Stopwatch clock;
  const auto done = Prefill(tokens, progress);
  if (!done.ok()) {
    in_progress_ = false;
    if (done.error().code == Code::kCancelled) Persist();
    return done.error();
  }
  report.prefill_ms = clock.ms();
  NoteRead(report.prompt_tokens - report.reused_tokens, report.prefill_ms);
  return report;
}

Result<void> SessionCore::Prefill(std::span<const std::int32_t> tokens,
                                  const Session::Progress& progress) {
  const int n_total = static_cast<int>(tokens.size());
  const int step_tokens = engine_->options.prefill_step_tokens > 0
                              ? engine_->options.prefill_step_tokens
                              : kPrefillStepDefault;
  // All of it now: a prompt that cannot fit is refused before any work.
  HEARTH_TRY(MakeRoom(n_total, Relief::kWait));
  for (int at = history_.n_tokens(); at < n_total;) {
    if (progress && !progress(at, n_total)) {
      return {Code::kCancelled, "the prefill was stopped at token " +
                                    std::to_string(at) + " of " +
                                    std::to_string(n_total)};
    }
    const int n = std::min(step_tokens, NextStop(n_total) - at);
    HEARTH_TRY(Step(tokens.subspan(static_cast<std::size_t>(at),
                                   static_cast<std::size_t>(n)),
                    at + n == n_total ? LogitRows::kLast : LogitRows::kNone));
    at += n;
  }
  if (progress) progress(n_total, n_total);
  return {};
}

}  // namespace hearth
