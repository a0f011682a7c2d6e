// What a request in flight is told: by the scheduler, and by the sockets.
#include <algorithm>

#include "serve/app/page_desk.h"
#include "serve/turn/turn_state.h"

namespace hearth::serve {

// --- The scheduler's thread --------------------------------------------------

void Turn::OnStart(int prompt, const SyncReport& report) {
  const Lock lock(mutex_);
  TurnPrompt& one = prompts_[static_cast<std::size_t>(prompt)];
  one.started = true;
  one.reused = one.done = report.reused_tokens;
  one.tier = report.reuse_tier;
  one.miss = report.miss_reason;
  one.miss_kind = report.miss_kind;
  one.report.lookup_ms = report.lookup_ms;
  one.report.queue_ms = std::max(0.0, since_submit_.ms() - report.lookup_ms);
  core_.page->feed().Found(tickets_[static_cast<std::size_t>(prompt)], report);
  const bool all = std::all_of(prompts_.begin(), prompts_.end(),
                               [](const TurnPrompt& p) { return p.started; });
  if (all && !over_) Begin();
}

void Turn::OnPrefill(int prompt, int done) {
  const Lock lock(mutex_);
  prompts_[static_cast<std::size_t>(prompt)].done = done;
}

bool Turn::OnToken(int prompt, int choice, const Token& token) {
  const Lock lock(mutex_);
  if (gone_ || over_) return false;
  if (prefilled_) core_.metrics->TokenGap(since_token_.ms());
  since_token_ = Stopwatch();
  prefilled_ = true;
  core_.page->feed().Token(tickets_[static_cast<std::size_t>(prompt)]);
  Begin();
  TurnChoice& one = choices_[static_cast<std::size_t>(IndexOf(prompt, choice))];
  Out(one.Feed(token, *writer_));
  return true;
}

void Turn::OnEnd(int prompt, int choice, const Result<GenerateReport>& report) {
  const Lock lock(mutex_);
  if (gone_ || over_) return;
  if (!report.ok()) {
    if (error_.has_value()) return;
    error_ = WireErrorOf(report.error());
    if (report.error().code == Code::kCancelled) {
      error_->message = "the server is stopping";
    }
    return;
  }
  if (error_.has_value()) return;
  // What a stop text ended is not all that was sampled.
  const bool whole =
      report->stop == StopReason::kLength ||
      (report->stop == StopReason::kEndOfText && report->end_id >= 0);
  if (whole && rendered_ != nullptr && !report->token_ids.empty()) {
    sampled_.push_back({report->token_ids, report->end_id});
  }
  Begin();
  TurnChoice& one = choices_[static_cast<std::size_t>(IndexOf(prompt, choice))];
  Out(one.Finish(*report, *writer_));
}

void Turn::OnDone(int prompt, const JobReport& report) {
  const Lock lock(mutex_);
  TurnPrompt& one = prompts_[static_cast<std::size_t>(prompt)];
  one.report = report;
  one.ended = true;
  if (--left_ > 0) return;
  core_.workers->Do([self = shared_from_this()] { self->Complete(); });
}

// --- The sockets' thread -----------------------------------------------------

void Turn::Gone() {
  const Lock lock(mutex_);
  if (gone_) return;
  gone_ = true;
  for (const JobId id : jobs_) core_.scheduler->Cancel(id);
}

void Turn::Full(bool full) {
  const Lock lock(mutex_);
  if (full) core_.metrics->StreamPaused();
  for (const JobId id : jobs_) core_.scheduler->Pause(id, full);
}

void Turn::Quiet() {
  const Lock lock(mutex_);
  if (over_ || ending_ || gone_ || writer_ == nullptr) return;
  Begin();
  int done = 0, total = 0;
  for (const TurnPrompt& prompt : prompts_) {
    done += prompt.done;
    total += prompt.tokens;
  }
  Out(writer_->Ping(done, total, since_submit_.ms()));
}

}  // namespace hearth::serve
