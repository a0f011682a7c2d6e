#include "serve/page/feed.h"

#include <algorithm>
#include <chrono>
#include <ctime>
#include <set>
#include <unordered_map>
#include <utility>

#include "base/mutex.h"
#include "serve/page/page_log.h"
#include "serve/page/page_state_json.h"
#include "serve/page/time_series.h"

namespace hearth::serve {
namespace {

std::int64_t SystemMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// Days since some day, by the machine's own midnight.
int DayOf(std::int64_t now_ms) {
  const auto seconds = static_cast<std::time_t>(now_ms / 1000);
  std::tm local{};
  localtime_r(&seconds, &local);
  return local.tm_year * 366 + local.tm_yday;
}

Place PlaceOf(const std::string& tier) {
  if (tier == "memory") return Place::kMemory;
  if (tier == "remote") return Place::kFetched;
  return Place::kMapped;
}

LaneState StateOf(JobView::State state) {
  switch (state) {
    case JobView::State::kWaiting:
      return LaneState::kWaiting;
    case JobView::State::kMatching:
      return LaneState::kMatching;
    case JobView::State::kPrefill:
      return LaneState::kPrefill;
    case JobView::State::kDecode:
      return LaneState::kDecode;
    case JobView::State::kPaused:
      return LaneState::kPaused;
  }
  return LaneState::kWaiting;
}

void Push(std::vector<LanePart>& parts, Place place, int tokens) {
  if (tokens > 0) parts.push_back({place, tokens});
}

std::string Frame(const char* event, const std::string& data) {
  return std::string("event: ") + event + "\ndata: " + data + "\n\n";
}

}  // namespace

struct PageFeed::State {
  explicit State(PageModel of, Clock with)
      : model(std::move(of)),
        clock(with ? std::move(with) : Clock(SystemMs)),
        log(model.block_tokens) {}

  const PageModel model;
  const Clock clock;
  Mutex mutex;
  PageLog log HEARTH_GUARDED_BY(mutex);
  std::set<std::uint64_t> touched HEARTH_GUARDED_BY(mutex);
  PageToday today HEARTH_GUARDED_BY(mutex);
  int day HEARTH_GUARDED_BY(mutex) = 0;
  double prefill_rate HEARTH_GUARDED_BY(mutex) = 0;
  TimeSeries ttft HEARTH_GUARDED_BY(mutex) = TimeSeries(-1);
  TimeSeries gap HEARTH_GUARDED_BY(mutex) = TimeSeries(-1);
  TimeSeries tokens HEARTH_GUARDED_BY(mutex) = TimeSeries(0);
  PageState seen HEARTH_GUARDED_BY(mutex);
  std::string change HEARTH_GUARDED_BY(mutex);

  void CountToday(const PageRequest& row, std::int64_t now)
      HEARTH_REQUIRES(mutex);
  void ShowRunning(PageLog::Lane& lane, const JobView* job, std::int64_t now)
      HEARTH_REQUIRES(mutex);
  void ShowAtRest(const SchedulerView& view, bool has_store)
      HEARTH_REQUIRES(mutex);
  PageState Look(const SchedulerView& view, const PageMeters& meters)
      HEARTH_REQUIRES(mutex);
};

PageFeed::PageFeed(PageModel model, Clock clock)
    : state_(std::make_unique<State>(std::move(model), std::move(clock))) {}
PageFeed::~PageFeed() = default;

PageFeed::Ticket PageFeed::Begin(const PageRequestStart& start) {
  MutexLock lock(state_->mutex);
  const Ticket ticket = state_->log.Begin(start, state_->clock()).row.number;
  state_->touched.insert(ticket);
  return ticket;
}

void PageFeed::Submitted(Ticket ticket, JobId job) {
  MutexLock lock(state_->mutex);
  if (auto* entry = state_->log.Find(ticket)) entry->job = job;
}

void PageFeed::Found(Ticket ticket, const SyncReport& report) {
  MutexLock lock(state_->mutex);
  auto* entry = state_->log.Find(ticket);
  if (entry == nullptr) return;
  state_->touched.insert(ticket);
  PageRequest& row = entry->row;
  row.tier = report.reuse_tier;
  row.miss = report.miss_reason;
  row.job.prompt_tokens = report.prompt_tokens;
  row.job.reused_tokens = report.reused_tokens;
  if (auto* lane = state_->log.LaneOf(*entry)) {
    lane->view.reused_tokens = report.reused_tokens;
    lane->view.miss = report.miss_reason;
  }
}

void PageFeed::Token(Ticket ticket) {
  MutexLock lock(state_->mutex);
  auto* entry = state_->log.Find(ticket);
  if (entry == nullptr) return;
  const std::int64_t now = state_->clock();
  state_->tokens.Add(now, 1);
  if (entry->first_token_ms == 0) {
    entry->first_token_ms = now;
    state_->ttft.NoteMax(now, static_cast<double>(now - entry->row.started_ms));
  } else {
    state_->gap.NoteMax(now, static_cast<double>(now - entry->last_token_ms));
  }
  entry->last_token_ms = now;
}

void PageFeed::End(Ticket ticket, const PageRequestEnd& end) {
  MutexLock lock(state_->mutex);
  auto* entry = state_->log.Find(ticket);
  if (entry == nullptr || entry->row.status != 0) return;
  const std::int64_t now = state_->clock();
  state_->touched.insert(ticket);
  state_->log.End(*entry, end, now);
  state_->CountToday(entry->row, now);
}

void PageFeed::State::CountToday(const PageRequest& row, std::int64_t now) {
  const int now_day = DayOf(now);
  if (now_day != day) today = {};
  day = now_day;
  ++today.requests;
  const JobReport& job = row.job;
  // What was neither reused nor computed was not asked of the cache.
  today.prompt_tokens +=
      static_cast<std::uint64_t>(job.reused_tokens + job.computed_tokens);
  today.reused_tokens += static_cast<std::uint64_t>(job.reused_tokens);
  today.completion_tokens += static_cast<std::uint64_t>(row.completion_tokens);
  // At the rate at which this machine computed prompts lately; before it has
  // computed any, nothing is claimed.
  if (prefill_rate > 0) {
    const double spared =
        job.reused_tokens / prefill_rate - job.lookup_ms / 1e3;
    today.seconds_spared += std::max(0.0, spared);
  }
}

void PageFeed::State::ShowRunning(PageLog::Lane& lane, const JobView* job,
                                  std::int64_t now) {
  PageLane& view = lane.view;
  const PageLog::Entry& entry = *log.Find(lane.running);
  view.parts.clear();
  view.state = LaneState::kWaiting;
  view.rate = 0;
  int done = view.reused_tokens;
  if (job != nullptr) {
    view.state = StateOf(job->state);
    view.generated = job->generated;
    done = std::max(done, job->tokens_done);
    if (view.state == LaneState::kPrefill) view.rate = prefill_rate;
  }
  done = std::min(done, view.prompt_tokens);
  const double s = static_cast<double>(now - entry.first_token_ms) / 1e3;
  if (entry.first_token_ms != 0 && s > 0.2) view.rate = view.generated / s;
  Push(view.parts, PlaceOf(entry.row.tier), view.reused_tokens);
  Push(view.parts, Place::kComputed, done - view.reused_tokens);
  Push(view.parts, Place::kTodo, view.prompt_tokens - done);
  Push(view.parts, Place::kComputed, view.generated);
}

// The scheduler says how many rest in memory: those that ended last.
void PageFeed::State::ShowAtRest(const SchedulerView& scheduled,
                                 bool has_store) {
  std::vector<PageLog::Lane*> resting;
  for (auto& [id, lane] : log.lanes()) {
    if (lane.running == 0) resting.push_back(&lane);
  }
  std::sort(resting.begin(), resting.end(), [](const auto* a, const auto* b) {
    return a->ended_ms > b->ended_ms;
  });
  for (std::size_t i = 0; i < resting.size(); ++i) {
    PageLane& view = resting[i]->view;
    const bool in_memory = i < static_cast<std::size_t>(scheduled.resting);
    view.state = in_memory   ? LaneState::kResting
                 : has_store ? LaneState::kStored
                             : LaneState::kGone;
    view.rate = 0;
    view.parts.clear();
    const Place place = in_memory   ? Place::kMemory
                        : has_store ? Place::kDisk
                                    : Place::kTodo;
    Push(view.parts, place, static_cast<int>(resting[i]->kept_tokens));
  }
}

PageState PageFeed::State::Look(const SchedulerView& scheduled,
                                const PageMeters& meters) {
  const std::int64_t now = clock();
  PageState state;
  state.sequence = seen.sequence + 1;
  state.now_ms = now;
  state.meters = meters;
  if (scheduled.prefill_rate > 0) prefill_rate = scheduled.prefill_rate;
  if (day != 0 && DayOf(now) != day) today = {};
  state.today = today;
  state.rates.prefill = scheduled.prefill_rate;
  state.rates.decode = scheduled.decode_rate;
  state.rates.resting = scheduled.resting;
  std::unordered_map<JobId, const JobView*> jobs;
  for (const JobView& job : scheduled.jobs) {
    jobs[job.id] = &job;
    ++(job.state == JobView::State::kWaiting ? state.rates.waiting
                                             : state.rates.running);
  }
  ShowAtRest(scheduled, meters.has_store);
  for (auto& [id, lane] : log.lanes()) {
    if (lane.running == 0) continue;
    const auto job = jobs.find(log.Find(lane.running)->job);
    ShowRunning(lane, job == jobs.end() ? nullptr : job->second, now);
  }
  for (auto lane = log.lanes().rbegin(); lane != log.lanes().rend(); ++lane) {
    state.lanes.push_back(lane->second.view);
  }
  const auto& entries = log.entries();
  for (auto entry = entries.rbegin(); entry != entries.rend(); ++entry) {
    state.requests.push_back(entry->second.row);
  }
  state.touched.assign(touched.begin(), touched.end());
  touched.clear();
  state.series = {ttft.Values(now), gap.Values(now), tokens.Values(now)};
  return state;
}

void PageFeed::Observe(const SchedulerView& view, const PageMeters& meters) {
  MutexLock lock(state_->mutex);
  PageState now = state_->Look(view, meters);
  const auto change = ChangeJson(state_->seen, now);
  state_->change = change.has_value() ? Frame("change", *change) : "";
  state_->seen = std::move(now);
}

std::string PageFeed::Snapshot() const {
  MutexLock lock(state_->mutex);
  return Frame("snapshot", SnapshotJson(state_->model, state_->seen));
}

std::string PageFeed::Change() const {
  MutexLock lock(state_->mutex);
  return state_->change;
}

}  // namespace hearth::serve
