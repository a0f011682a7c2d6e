// From the line to the first token that is computed: whose turn it is, what is
// known of its prompt, and who computes what several have in common.
#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "serve/schedule/driver.h"

namespace hearth::serve {
namespace {

bool IsParked(const Branch& b) { return b.state == Branch::State::kParked; }
bool IsActive(const Branch& b) {
  return b.state != Branch::State::kParked && b.state != Branch::State::kOver;
}
bool IsPrefill(const Branch& b) { return b.state == Branch::State::kPrefill; }

int CommonTokens(const std::vector<std::int32_t>& a,
                 const std::vector<std::int32_t>& b) {
  return static_cast<int>(
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

// Those whose memory was taken come first. Then first come, first served, but
// key spaces take turns.
void Driver::Admit() {
  while (Return()) {
  }
  if (!All(IsParked).empty()) return;
  int n_running = 0;
  for (const auto& [id, job] : jobs_) {
    if (!job->branches.empty()) n_running += job->job.n - job->n_over;
  }
  while (!waiting_.empty()) {
    const auto next = std::min_element(
        waiting_.begin(), waiting_.end(),
        [&](const JobState* a, const JobState* b) {
          return turn_[a->job.key_space] < turn_[b->job.key_space];
        });
    JobState& job = **next;
    if (n_running > 0 && n_running + job.job.n > options_.running_max) return;
    n_running += job.job.n;
    waiting_.erase(next);
    Start(job);
  }
}

void Driver::Start(JobState& job) {
  turn_[job.job.key_space] = n_admitted_ + 1;
  job.report.queue_ms = backend_.NowMs() - job.submitted_ms;
  auto branch = std::make_unique<Branch>();
  branch->job = &job;
  branch->age = ++n_admitted_;
  branch->want = job.job.prompt;
  branch->sequence = resting_.Take(branch->want, job.job.key_space);
  if (branch->sequence == nullptr) {
    auto made = backend_.NewSequence(job.job.key_space);
    if (!made.ok()) return EndJob(job, made.error());
    branch->sequence = std::move(*made);
  }
  Branch& first = *branch;
  job.branches.push_back(std::move(branch));
  BeginMatch(first);
}

// One whose memory was taken comes back when some has become free, or, to see
// whether the writer has made some, when nobody has missed any for a while.
bool Driver::Return() {
  const Branches parked = All(IsParked);
  if (parked.empty()) return false;
  Branch& oldest = *parked.front();
  const bool calm = backend_.NowMs() - short_last_ >= options_.memory_wait_ms;
  const bool freed = oldest.parked_at != n_freed_;
  const Branches active = All(IsActive);
  const bool somebody_short =
      std::any_of(active.begin(), active.end(),
                  [](const Branch* b) { return b->short_since >= 0; });
  if (!active.empty() && (somebody_short || (!freed && !calm))) return false;
  short_last_ = backend_.NowMs();
  for (Branch* branch : parked) branch->parked_at = n_freed_;
  BeginMatch(oldest);
  return true;
}

void Driver::BeginMatch(Branch& branch) {
  branch.state = Branch::State::kMatching;
  branch.at = 0;
  if (!backend_.has_store()) return Attach(branch, nullptr);
  const int n_held = branch.sequence->Held(branch.want);
  const std::uint64_t id = ++n_lookups_;
  lookups_[id] = {&branch, n_held};
  look_up_({id, branch.want, n_held, branch.job->job.key_space});
}

void Driver::Matched(std::uint64_t lookup, std::unique_ptr<Found> found) {
  const auto at = lookups_.find(lookup);
  if (at == lookups_.end()) return;
  Branch& branch = *at->second.branch;
  const int n_held = at->second.n_held;
  lookups_.erase(at);
  if (branch.state != Branch::State::kMatching) return;
  if (!branch.rematched &&
      branch.sequence->Held(branch.want) + backend_.block_tokens() <= n_held) {
    // What was in memory, and not looked for, has gone from there.
    branch.rematched = true;
    return BeginMatch(branch);
  }
  Attach(branch, std::move(found));
  Bury();
}

void Driver::Attach(Branch& branch, std::unique_ptr<Found> found) {
  JobState& job = *branch.job;
  const bool looked = found != nullptr;
  std::vector<int> marks;
  std::set_union(job.job.save_points.begin(), job.job.save_points.end(),
                 job.job.marks.begin(), job.job.marks.end(),
                 std::back_inserter(marks));
  const auto report =
      branch.sequence->Attach(branch.want, std::move(found), marks);
  if (!report.ok()) return EndJob(job, report.error());
  branch.at = report->reused_tokens;
  branch.state = Branch::State::kPrefill;
  branch.passed_over = 0;
  FindLeader(branch);
  // Others on the same way, behind it, need not go there.
  for (Branch* other : All(IsPrefill)) {
    if (!other->follows()) FindLeader(*other);
  }
  if (looked) job.report.lookup_ms += report->lookup_ms;
  if (!branch.follows()) TellStart(job, *report);
}

void Driver::TellStart(JobState& job, const SyncReport& report) {
  if (job.started) return;
  job.started = true;
  job.attached_ms = backend_.NowMs();
  job.report.reused_tokens = report.reused_tokens;
  job.report.computed_tokens = report.prompt_tokens - report.reused_tokens;
  counts_.prompt_tokens += static_cast<std::uint64_t>(report.prompt_tokens);
  counts_.reused_tokens += static_cast<std::uint64_t>(report.reused_tokens);
  if (job.job.callbacks.on_start) job.job.callbacks.on_start(report);
}

// The prefill that is ahead on the longest common way, if waiting for it spares
// a block at least.
void Driver::FindLeader(Branch& branch) {
  const int block = backend_.block_tokens();
  for (const Branch* other : All(IsPrefill)) {
    if (other == &branch || other->follows() ||
        other->job->job.key_space != branch.job->job.key_space ||
        branch.followed.contains(other->age)) {
      continue;
    }
    const bool ahead = other->at != branch.at ? other->at > branch.at
                                              : other->age < branch.age;
    if (!ahead) continue;
    const int n = CommonTokens(branch.want, other->want) / block * block;
    if (n < branch.at + block || n <= branch.follow_to) continue;
    // A model with states can be followed to where it still comes to.
    if (!other->sequence->AddStop(n)) continue;
    branch.follow_to = n;
    branch.leader = other->age;
  }
}

// Whoever has waited long enough takes what is there. A leader that is gone, or
// whose memory was taken, has a heir: the first of those that followed it.
void Driver::Follow() {
  const Branches prefills = All(IsPrefill);
  for (Branch* branch : prefills) {
    if (!branch->follows() || !IsPrefill(*branch)) continue;
    const auto leader = std::find_if(
        prefills.begin(), prefills.end(), [&](const Branch* other) {
          return other->age == branch->leader && IsPrefill(*other) &&
                 !other->follows();
        });
    if (leader != prefills.end() && (*leader)->at < branch->follow_to) continue;
    const bool arrived = leader != prefills.end();
    const int wanted = std::exchange(branch->follow_to, 0);
    const std::uint64_t followed = branch->leader;
    Attach(*branch, nullptr);
    // It waits for nobody twice in vain (a window may have let go of it all).
    if (arrived && branch->at < wanted) branch->followed.insert(followed);
  }
}

}  // namespace hearth::serve
