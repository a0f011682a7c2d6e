// A pass: what is ready, what of it has memory, and what came of it.
#include <algorithm>
#include <utility>

#include "serve/schedule/driver.h"

namespace hearth::serve {
namespace {

// Rows of answers and their guesses together, as far as guesses can be spared.
constexpr int kDecodeRowsMax = 64;

bool IsDecode(const Branch& b) { return b.state == Branch::State::kDecode; }
bool IsReady(const Branch& b) {
  return b.state == Branch::State::kDecode
             ? !b.job->paused && b.unread == 0
             : b.state == Branch::State::kPrefill && !b.follows();
}
bool Reads(const Branch& b) {
  return IsDecode(b) && b.unread > 0 && !b.job->paused;
}

// The next place where a prefill must stop.
int StopAfter(const Branch& branch) {
  const int end = static_cast<int>(branch.want.size());
  const int next = std::min(end, branch.sequence->NextStop());
  if (branch.answer == nullptr) {
    for (const int stop : branch.job->job.save_points) {
      if (stop > branch.at && stop < end) return std::min(stop, next);
    }
  }
  return next;
}

}  // namespace

PlanItem Driver::ItemOf(const Branch& branch) const {
  if (IsDecode(branch)) {
    return {.decodes = true,
            .tokens = static_cast<int>(branch.next.size()),
            .passed_over = branch.passed_over};
  }
  return {.tokens = StopAfter(branch) - branch.at,
          .at = branch.at,
          .left = static_cast<int>(branch.want.size()) - branch.at,
          .passed_over = branch.passed_over};
}

bool Driver::Compute() {
  Branches ready = All(IsReady);
  // Whoever was just refused memory takes nobody's place.
  std::erase_if(ready, [now = backend_.NowMs()](const Branch* b) {
    return now < b->retry_ms;
  });
  const bool decodes = std::any_of(
      ready.begin(), ready.end(), [](const Branch* b) { return IsDecode(*b); });
  const bool prefills =
      std::any_of(ready.begin(), ready.end(),
                  [](const Branch* b) { return !IsDecode(*b); });
  // What a draft model reads takes the place of prompts, in turns with them.
  Branch* const reader = prefills && read_last_ ? nullptr : Reader();
  const int n_read = reader == nullptr ? 0 : planner_.ReadTokens(decodes);
  const auto read = [&] {
    return n_read > 0 && Reads(*reader) && Read(*reader, n_read, decodes);
  };
  if (ready.empty()) return read();
  std::vector<PlanItem> items;
  for (const Branch* branch : ready) items.push_back(ItemOf(*branch));
  const Pass pass = planner_.Plan(items, /*prefills=*/n_read == 0);
  if (n_read > 0 || pass.prefill_rows > 0) read_last_ = n_read > 0;
  std::vector<Part> parts = Reserved(ready, pass);
  if (parts.empty()) return read();
  // In a pass that is not as planned nobody is passed over: memory is missing.
  int n_rows = 0;
  for (const Part& part : parts) n_rows += static_cast<int>(part.tokens.size());
  if (n_rows == pass.decode_rows + pass.prefill_rows) {
    for (std::size_t i = 0; i < ready.size(); ++i) {
      ready[i]->passed_over += pass.passed_over[i] ? 1 : 0;
    }
  }
  Run(std::move(parts));
  (void)read();
  return true;
}

// Whose draft model reads: one at a time, so that none takes another's memory
// again and again; the one that has begun, else the one with least to read.
Branch* Driver::Reader() const {
  Branch* next = nullptr;
  for (Branch* branch : All(Reads)) {
    if (branch->age == reader_) return branch;
    if (next == nullptr || branch->unread < next->unread) next = branch;
  }
  return next;
}

bool Driver::Read(Branch& branch, int n_tokens, bool others_decode) {
  const double start = backend_.NowMs();
  const int n = std::min(n_tokens, branch.unread);
  const auto left = branch.answer->Prepare(n);
  planner_.ReportRead(n, backend_.NowMs() - start, others_decode);
  if (!left.ok()) {
    EndBranch(branch, left.error());
    return true;
  }
  branch.unread = *left;
  reader_ = *left > 0 ? branch.age : 0;
  if (*left == 0) Advance(branch);
  return true;
}

// Answers first, the oldest first: whoever gets no memory is left out.
std::vector<Driver::Part> Driver::Reserved(const Branches& ready,
                                           const Pass& pass) {
  std::vector<Part> parts;
  for (const bool decodes : {true, false}) {
    for (std::size_t i = 0; i < ready.size(); ++i) {
      Branch& branch = *ready[i];
      const int n = pass.rows[i];
      if (n == 0 || !IsReady(branch) || IsDecode(branch) != decodes) continue;
      if (!Reserve(branch, branch.sequence->n_tokens() + n)) continue;
      if (decodes) {
        parts.push_back({&branch, branch.next, StepLogits::kAll});
        continue;
      }
      const auto first = branch.want.begin() + branch.at;
      const bool last = branch.at + n == static_cast<int>(branch.want.size());
      parts.push_back({&branch,
                       {first, first + n},
                       last ? StepLogits::kLast : StepLogits::kNone});
    }
  }
  // Some may have given way to others meanwhile.
  std::erase_if(parts, [](const Part& p) { return !IsReady(*p.branch); });
  return parts;
}

void Driver::Run(std::vector<Part> parts) {
  std::vector<SequenceStep> steps;
  int decode_rows = 0, prefill_rows = 0;
  for (const Part& part : parts) {
    steps.push_back({part.branch->sequence.get(), part.tokens, part.want});
    (IsDecode(*part.branch) ? decode_rows : prefill_rows) +=
        static_cast<int>(part.tokens.size());
  }
  const double start = backend_.NowMs();
  if (backend_.Step(steps).ok()) {
    planner_.Report(decode_rows, prefill_rows, backend_.NowMs() - start);
  } else {
    std::vector<Part> done;
    RunAlone(parts, done);
    parts = std::move(done);
  }
  ++counts_.passes;
  counts_.mixed_passes += decode_rows > 0 && prefill_rows > 0;
  counts_.rows += static_cast<std::uint64_t>(decode_rows + prefill_rows);
  for (const Part& part : parts) {
    Branch& branch = *part.branch;
    branch.passed_over = 0;
    const int n = static_cast<int>(part.tokens.size());
    if (IsDecode(branch)) {
      Advance(branch);
    } else if (branch.state == Branch::State::kPrefill) {
      AfterPrefill(branch, n);
    }
  }
}

// A pass failed and nobody has changed: whose fault it is shows alone.
void Driver::RunAlone(const std::vector<Part>& parts, std::vector<Part>& done) {
  for (const Part& part : parts) {
    const SequenceStep step{part.branch->sequence.get(), part.tokens,
                            part.want};
    const auto result = backend_.Step({&step, 1});
    if (result.ok()) {
      done.push_back(part);
    } else if (IsDecode(*part.branch)) {
      EndBranch(*part.branch, result.error());
    } else {
      EndJob(*part.branch->job, result.error());
    }
  }
}

void Driver::AfterPrefill(Branch& branch, int n) {
  JobState& job = *branch.job;
  branch.at += n;
  if (!job.forked && job.job.callbacks.on_prefill) {
    job.job.callbacks.on_prefill(branch.at, job.report.prompt_tokens);
  }
  if (branch.at < static_cast<int>(branch.want.size())) {
    const auto& stops = job.job.save_points;
    if (branch.answer == nullptr &&
        std::find(stops.begin(), stops.end(), branch.at) != stops.end()) {
      (void)branch.sequence->TryPersist(/*rests=*/false);
    }
    return;
  }
  branch.state = Branch::State::kDecode;
  if (branch.answer == nullptr) BeginAnswers(branch);
}

// The prompt is there: every choice goes on from it.
void Driver::BeginAnswers(Branch& branch) {
  JobState& job = *branch.job;
  Branches all = {&branch};
  if (!job.forked) {
    job.forked = true;
    for (int choice = 1; choice < job.job.n; ++choice) {
      auto fork = std::make_unique<Branch>();
      fork->job = &job;
      fork->choice = choice;
      fork->age = ++n_admitted_;
      fork->want = branch.want;
      auto sequence = branch.sequence->Fork();
      if (sequence.ok()) {
        fork->sequence = std::move(*sequence);
        fork->at = branch.at;
        fork->state = Branch::State::kDecode;
        all.push_back(fork.get());
      } else {
        // No memory now: later, as one whose memory was taken.
        fork->state = Branch::State::kParked;
        fork->parked_at = n_freed_;
        auto made = backend_.NewSequence(job.job.key_space);
        if (!made.ok()) return EndJob(job, made.error());
        fork->sequence = std::move(*made);
      }
      job.branches.push_back(std::move(fork));
    }
  }
  for (Branch* each : all) BeginAnswer(*each);
}

void Driver::BeginAnswer(Branch& branch) {
  JobState& job = *branch.job;
  GenerateOptions options = job.job.options;
  options.sampling.seed += static_cast<std::uint64_t>(branch.choice);
  auto answer = branch.sequence->Begin(
      options, [this, &job, choice = branch.choice](const Token& token) {
        if (token.id >= 0) {
          ++job.generated;
          ++counts_.generated_tokens;
          if (job.first_token_ms == 0) {
            job.first_token_ms = backend_.NowMs();
            job.report.ttft_ms = job.first_token_ms - job.submitted_ms;
            job.report.prefill_ms = job.first_token_ms - job.attached_ms;
          }
        }
        const auto& on_token = job.job.callbacks.on_token;
        return !on_token || on_token(choice, token);
      });
  if (!answer.ok()) return EndBranch(branch, answer.error());
  branch.answer = std::move(*answer);
  Advance(branch);
}

// Samples what the last pass gave, and has the next pass's rows ready.
void Driver::Advance(Branch& branch) {
  const auto unread = branch.answer->Prepare(0);
  if (!unread.ok()) return EndBranch(branch, unread.error());
  branch.unread = *unread;
  if (branch.unread > 0) return;
  const int n_decoding = static_cast<int>(All(IsDecode).size());
  const auto next =
      branch.answer->Next(std::max(0, kDecodeRowsMax / n_decoding - 1));
  if (!next.ok()) return EndBranch(branch, next.error());
  if (next->empty()) {
    const GenerateReport report = branch.answer->Finish();
    return EndBranch(branch, report);
  }
  branch.next.assign(next->begin(), next->end());
}

}  // namespace hearth::serve
