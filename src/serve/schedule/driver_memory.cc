// Who gets memory, and who gives way. In this order: what is stored becomes a
// mapping and saved resting ones go; the writer is waited for; unsaved resting
// ones go; the prefill with most left goes back to the line; at last the
// youngest answer, whose tokens and draws are kept.
#include <algorithm>

#include "serve/schedule/driver.h"

namespace hearth::serve {
namespace {

constexpr double kRetryMs = 5;
// With nobody else to take from, what the writer holds is waited for longer:
// the other way out is an error.
constexpr double kLastWaitMs = 30000;

bool HoldsMemory(const Branch& b) {
  return b.state == Branch::State::kPrefill ||
         b.state == Branch::State::kDecode;
}
bool IsPrefill(const Branch& b) { return b.state == Branch::State::kPrefill; }

int Left(const Branch& b) { return static_cast<int>(b.want.size()) - b.at; }

}  // namespace

bool Driver::Reserve(Branch& branch, int n_tokens) {
  const double now = backend_.NowMs();
  auto got = branch.sequence->Reserve(n_tokens, Relief::kFree);
  if (!got.ok() && branch.short_since < 0) branch.short_since = now;
  if (!got.ok() && (now - branch.short_since >= options_.memory_wait_ms ||
                    backend_.waiting_bytes() == 0)) {
    got = branch.sequence->Reserve(n_tokens, Relief::kResting);
    if (!got.ok()) {
      const bool last_wait = backend_.waiting_bytes() > 0 &&
                             now - branch.short_since < kLastWaitMs;
      if (All(HoldsMemory).size() > 1 || !last_wait) {
        MakeWay(got.error());
        if (!HoldsMemory(branch)) return false;  // it was its own turn
        // What gave way may be on its way to the store first.
        branch.short_since = now;
      }
    }
  }
  if (got.ok()) {
    branch.short_since = -1;
    return true;
  }
  short_last_ = now;
  branch.retry_ms = now + kRetryMs;
  branch.passed_over = 0;  // it had its turn
  return false;
}

void Driver::MakeWay(const Error& refusal) {
  const Branches all = All(HoldsMemory);
  Branch* victim = nullptr;
  if (all.size() == 1) {
    // There is nobody else to take from, nor will there be.
    Branch& only = *all.front();
    return IsPrefill(only) ? EndJob(*only.job, refusal)
                           : EndBranch(only, refusal);
  }
  for (Branch* branch : all) {
    if (IsPrefill(*branch) &&
        (victim == nullptr || Left(*branch) >= Left(*victim))) {
      victim = branch;
    }
  }
  if (victim == nullptr) {
    victim = all.back();
    for (Branch* branch : all) {
      if (branch->job->paused) victim = branch;  // nobody reads it now
    }
  }
  Park(*victim);
}

void Driver::Park(Branch& branch) {
  ++branch.job->report.preemptions;
  ++(IsPrefill(branch) ? counts_.preempted_prefills
                       : counts_.preempted_decodes);
  // An answer goes on from what its sequence holds now.
  if (!IsPrefill(branch)) branch.want = branch.sequence->tokens();
  (void)branch.sequence->TryPersist(/*rests=*/false);
  branch.sequence->Rest();
  branch.follow_to = 0;
  branch.state = Branch::State::kParked;
  moved_ = true;
  branch.parked_at = n_freed_;
  branch.short_since = -1;
  branch.retry_ms = 0;
  short_last_ = backend_.NowMs();
}

}  // namespace hearth::serve
