#include "engine/session.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/stopwatch.h"
#include "engine/emitter.h"

namespace hearth {
namespace {

// Tokens per prefill step: enough to amortise unpacking the weights, few enough
// for a lively progress bar and a prompt answer to a cancel.
constexpr int kPrefillStepDefault = 256;

int CommonPrefix(std::span<const std::int32_t> a,
                 std::span<const std::int32_t> b) {
  const auto n = std::min(a.size(), b.size());
  std::size_t i = 0;
  while (i < n && a[i] == b[i]) ++i;
  return static_cast<int>(i);
}

}  // namespace

Result<void> SessionImpl::CheckPrompt(
    std::span<const std::int32_t> tokens) const {
  if (tokens.empty()) {
    return {Code::kInvalidArgument,
            "the prompt is empty; give at least one token of text"};
  }
  if (tokens.size() > static_cast<std::size_t>(parts_.context_tokens)) {
    return {Code::kResourceFull, "the prompt has " +
                                     std::to_string(tokens.size()) +
                                     " tokens and the context holds " +
                                     std::to_string(parts_.context_tokens) +
                                     "; shorten it or raise --context"};
  }
  for (const std::int32_t id : tokens) {
    if (id < 0 || id >= parts_.model.config.vocab_size) {
      return {Code::kInvalidArgument,
              "token id " + std::to_string(id) +
                  " is outside the model's vocabulary of " +
                  std::to_string(parts_.model.config.vocab_size)};
    }
  }
  return {};
}

int SessionImpl::Restore(std::span<const std::int32_t> tokens, int n_have,
                         SyncReport& report) {
  const Stopwatch clock;
  StoreMatch match = parts_.prompt_cache->Lookup(parts_.spec, tokens, n_have);
  report.miss_reason = std::move(match.miss_reason);
  report.warnings = std::move(match.warnings);
  if (match.n_tokens > n_have) {
    // Into a new sequence: a failed load never touches the live one.
    auto restored = parts_.NewSequence();
    std::uint64_t fetched_bytes = 0;
    for (std::size_t i = 0; restored.ok() && i < match.blocks.size(); ++i) {
      StoredBlock& block = match.blocks[i];
      if (!block.is_mapped) fetched_bytes += block.payload.size();
      const auto appended = (*restored)->AppendStored(
          block.payload, block.n_tokens, std::move(block.owner));
      if (!appended.ok()) restored = appended.error();
    }
    if (restored.ok()) {
      sequence_ = std::move(*restored);
      n_have = n_stored_ = match.n_tokens;
      fetched_bytes_ = fetched_bytes;
      report.reuse_tier = parts_.prompt_cache->TierOf(match);
    } else {
      report.warnings.push_back("stored KV not used: " +
                                restored.error().message);
    }
  }
  report.lookup_ms = clock.ms();
  return n_have;
}

Result<void> SessionImpl::Prefill(std::span<const std::int32_t> tokens,
                                  const Progress& progress) {
  const int n_total = static_cast<int>(tokens.size());
  const int step_tokens = parts_.options.prefill_step_tokens > 0
                              ? parts_.options.prefill_step_tokens
                              : kPrefillStepDefault;
  // All of it now: a prompt that cannot fit is refused before any work.
  HEARTH_TRY(MakeRoom(n_total));
  parts_.pool->UseThreads(parts_.n_threads_prefill());
  logits_.resize(static_cast<std::size_t>(parts_.model.config.vocab_size));
  const bool needs_hidden =
      speculation_ != nullptr && speculation_->drafter().needs_hidden();
  if (needs_hidden) {
    hidden_.resize(static_cast<std::size_t>(parts_.model.config.d_model));
  }
  last_save_ = std::chrono::steady_clock::now();
  for (int at = sequence_->n_tokens(); at < n_total;) {
    if (progress && !progress(at, n_total)) {
      logits_.clear();
      return {Code::kCancelled, "the prefill was stopped at token " +
                                    std::to_string(at) + " of " +
                                    std::to_string(n_total)};
    }
    const int n = std::min(step_tokens, n_total - at);
    const auto step = tokens.subspan(static_cast<std::size_t>(at),
                                     static_cast<std::size_t>(n));
    const bool last = at + n == n_total;
    const auto done = parts_.forward->Step(
        {.kv = sequence_.get(),
         .tokens = step,
         .want = last ? LogitRows::kLast : LogitRows::kNone,
         .logits = logits_.data(),
         .hidden = needs_hidden ? hidden_.data() : nullptr});
    if (!done.ok()) {
      logits_.clear();
      return done;
    }
    tokens_.insert(tokens_.end(), step.begin(), step.end());
    at += n;
    SaveSealed(/*now=*/false);
    KeepUnsaved();
  }
  if (progress) progress(n_total, n_total);
  return {};
}

Result<SyncReport> SessionImpl::Sync(std::span<const std::int32_t> tokens,
                                     const Progress& progress) {
  HEARTH_TRY(CheckPrompt(tokens));
  SyncReport report;
  report.prompt_tokens = static_cast<int>(tokens.size());
  report.reuse_tier = "none";
  const int n_common = CommonPrefix(tokens_, tokens);
  int n_have = sequence_->RewindableTo(n_common);
  n_stored_ = std::min(n_stored_, n_common);
  if (n_have > 0) report.reuse_tier = "memory";
  const bool whole = n_have == report.prompt_tokens;
  if (parts_.prompt_cache != nullptr && !whole) {
    n_have = Restore(tokens, n_have, report);
  }
  unsaved_prompt_.reset();
  if (parts_.prompt_cache != nullptr && n_stored_ < report.prompt_tokens) {
    unsaved_prompt_ = tokens.size();
  }
  // The last token is always computed: its logits start the answer.
  report.reused_tokens =
      sequence_->RewindableTo(std::min(n_have, report.prompt_tokens - 1));
  if (report.reused_tokens == 0) report.reuse_tier = "none";
  sequence_->Rewind(report.reused_tokens);
  tokens_.assign(tokens.begin(), tokens.begin() + report.reused_tokens);
  logits_.clear();
  const Stopwatch clock;
  const auto done = Prefill(tokens, progress);
  if (!done.ok()) {
    if (done.error().code == Code::kCancelled) Persist();
    return done.error();
  }
  awaiting_generate_ = true;
  report.prefill_ms = clock.ms();
  if (parts_.prompt_cache != nullptr) {
    parts_.prompt_cache->NotePrefill(
        report.prompt_tokens - report.reused_tokens, report.prefill_ms);
  }
  return report;
}

Result<GenerateReport> SessionImpl::Generate(const GenerateOptions& options,
                                             const OnToken& on_token,
                                             const Progress& on_draft_prefill) {
  HEARTH_TRY(CheckSampling(options.sampling));
  if (logits_.empty()) {
    return {Code::kInvalidArgument, "nothing to continue: call Sync first"};
  }
  awaiting_generate_ = false;
  Emitter emitter(parts_, options, on_token);
  if (options.n_tokens_max <= 0) {
    SavePrompt();
    return emitter.Finish();
  }
  if (parts_.draft != nullptr) {
    emitter.speculation().drafter = parts_.draft->Describe();
  }
  std::optional<std::int32_t> id = emitter.Next(logits_);
  // Off the critical path: the first token is out.
  SavePrompt();
  while (id.has_value()) {
    KeepUnsaved();
    if (sequence_->n_tokens() >= parts_.context_tokens) {
      emitter.StopForContext();
      break;
    }
    auto next = GoOn(*id, options, on_draft_prefill, emitter);
    if (!next.ok() && next.error().code == Code::kCancelled) {
      emitter.StopForCaller();
      break;
    }
    HEARTH_ASSIGN(id, std::move(next));
  }
  return emitter.Finish();
}

Result<std::optional<std::int32_t>> SessionImpl::GoOn(
    std::int32_t id, const GenerateOptions& options,
    const Progress& on_draft_prefill, Emitter& emitter) {
  HEARTH_TRY(MakeRoom(sequence_->n_tokens() + 1 +
                      (speculation_ ? parts_.options.draft_tokens : 0)));
  parts_.pool->UseThreads(parts_.n_threads());
  if (speculation_ != nullptr) {
    return speculation_->Step(
        id, options.speculate,
        {*parts_.forward, *sequence_, tokens_, logits_, hidden_,
         parts_.context_tokens, on_draft_prefill},
        emitter);
  }
  HEARTH_TRY(Append(id));
  return emitter.Next(logits_);
}

Result<void> SessionImpl::Append(std::int32_t token) {
  HEARTH_TRY(parts_.forward->Step({.kv = sequence_.get(),
                                   .tokens = std::span(&token, 1),
                                   .want = LogitRows::kLast,
                                   .logits = logits_.data()}));
  tokens_.push_back(token);
  return {};
}

Result<void> SessionImpl::Follow(std::span<const std::int32_t> tokens,
                                 const Progress& progress) {
  const int n_common = std::min(CommonPrefix(tokens_, tokens),
                                static_cast<int>(tokens.size()) - 1);
  if (static_cast<int>(tokens.size()) - n_common > parts_.spec.block_tokens) {
    HEARTH_TRY(Sync(tokens, progress));
    SavePrompt();
    return {};
  }
  HEARTH_TRY(Rewind(n_common));
  return Prefill(tokens, nullptr);
}

void SessionImpl::Speculate(std::unique_ptr<Drafter> drafter) {
  speculation_ = std::make_unique<Speculation>(std::move(drafter),
                                               parts_.options.draft_tokens);
}

Result<GenerateReport> SessionImpl::GenerateUncached(
    std::span<const std::int32_t> prompt, const GenerateOptions& options,
    const OnToken& on_token) {
  HEARTH_TRY(CheckSampling(options.sampling));
  HEARTH_TRY(CheckPrompt(prompt));
  std::vector<std::int32_t> all(prompt.begin(), prompt.end());
  Emitter emitter(parts_, options, on_token);
  while (options.n_tokens_max > 0) {
    sequence_->Rewind(0);
    tokens_.clear();
    HEARTH_TRY(Prefill(all, nullptr));
    const std::optional<std::int32_t> id = emitter.Next(logits_);
    if (!id.has_value()) break;
    if (all.size() >= static_cast<std::size_t>(parts_.context_tokens)) {
      emitter.StopForContext();
      break;
    }
    all.push_back(*id);
  }
  sequence_->Rewind(0);
  tokens_.clear();
  logits_.clear();
  n_stored_ = 0;
  return emitter.Finish();
}

Result<void> SessionImpl::Rewind(int n_tokens) {
  if (n_tokens < 0 || n_tokens > sequence_->n_tokens()) {
    return {Code::kInvalidArgument,
            "cannot rewind to " + std::to_string(n_tokens) + " of " +
                std::to_string(sequence_->n_tokens()) + " tokens"};
  }
  if (sequence_->RewindableTo(n_tokens) != n_tokens) {
    // Some of it is gone, quantised or let go of: from the store or computed
    // once more.
    const std::vector<std::int32_t> kept(tokens_.begin(),
                                         tokens_.begin() + n_tokens);
    HEARTH_TRY(Sync(kept, nullptr));
  } else {
    sequence_->Rewind(n_tokens);
    tokens_.resize(static_cast<std::size_t>(n_tokens));
    n_stored_ = std::min(n_stored_, n_tokens);
  }
  logits_.clear();
  unsaved_prompt_.reset();
  return {};
}

Result<std::unique_ptr<Session>> SessionImpl::Fork() {
  HEARTH_ASSIGN(std::unique_ptr<SessionImpl> fork, ForkImpl());
  return std::unique_ptr<Session>(std::move(fork));
}

Result<std::unique_ptr<SessionImpl>> SessionImpl::ForkImpl() {
  HEARTH_ASSIGN(auto sequence, sequence_->Fork());
  auto fork = std::make_unique<SessionImpl>(parts_, std::move(sequence));
  fork->tokens_ = tokens_;
  fork->logits_ = logits_;
  fork->hidden_ = hidden_;
  fork->n_stored_ = n_stored_;
  fork->n_lost_ = n_lost_;
  fork->fetched_bytes_ = fetched_bytes_;
  if (speculation_ != nullptr) {
    HEARTH_ASSIGN(fork->speculation_, speculation_->Fork());
  }
  return fork;
}

std::uint64_t SessionImpl::HeldBytes() const {
  const KvReport usage = Usage();
  return usage.physical_bytes - usage.mapped_bytes;
}

void SessionImpl::LetGo() {
  Persist();
  // Blocks that wait to be written still take memory.
  if (parts_.prompt_cache != nullptr) parts_.prompt_cache->WaitForWriter();
  (void)Rewind(0);
}

Result<void> SessionImpl::MakeRoom(int n_tokens) {
  if (parts_.options.kv_ram_budget_bytes == 0) return {};
  const int step = parts_.spec.block_tokens;
  // A window lets go of the rest.
  const int n_most = parts_.n_kv_blocks();
  const int n_blocks = std::min((n_tokens + step - 1) / step, n_most) -
                       std::min(sequence_->n_blocks(), n_most);
  if (n_blocks <= 0) return {};
  // A preallocated sequence holds all that it can grow to.
  const std::uint64_t bytes =
      parts_.options.kv_preallocate
          ? 0
          : static_cast<std::uint64_t>(n_blocks) *
                KvLayout(parts_.spec, step).block_bytes();
  return parts_.ram->MakeRoom(*this, bytes);
}

KvReport SessionImpl::Usage() const {
  const KvUsage usage = sequence_->Usage();
  return {.tokens = sequence_->n_tokens(),
          .logical_bytes = usage.logical_bytes,
          .physical_bytes = usage.physical_bytes,
          .mapped_bytes =
              usage.mapped_bytes - std::min(usage.mapped_bytes, fetched_bytes_),
          .populated_layers = usage.populated_layers,
          .kv_layers = parts_.spec.n_layers()};
}

}  // namespace hearth
