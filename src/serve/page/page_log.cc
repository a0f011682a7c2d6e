#include "serve/page/page_log.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "serve/page/client_name.h"

namespace hearth::serve {
namespace {

// Labels are the client's; a lane has room for some.
constexpr std::size_t kLabelMax = 48;

}  // namespace

PageLog::Lane& PageLog::LaneFor(const PageRequestStart& start,
                                std::int64_t now_ms) {
  PromptTrace trace(start.prompt, block_tokens_);
  Lane* found = nullptr;
  for (auto& [id, lane] : lanes_) {
    const bool longer =
        found == nullptr || lane.trace.n_tokens() > found->trace.n_tokens();
    if (lane.running == 0 && longer &&
        lane.trace.GoesOnIn(start.prompt, trace)) {
      found = &lane;
    }
  }
  if (found == nullptr) {
    const std::uint64_t id = next_lane_++;
    found = &lanes_[id];
    found->view.id = id;
    found->view.turns = 0;
  }
  found->trace = std::move(trace);
  PageLane& view = found->view;
  ++view.turns;
  view.client = ClientName(start.client);
  view.label = start.label.substr(0, kLabelMax);
  view.since_ms = now_ms;
  view.prompt_tokens = static_cast<int>(start.prompt.size());
  view.reused_tokens = view.generated = 0;
  view.miss.clear();
  return *found;
}

PageLog::Entry& PageLog::Begin(const PageRequestStart& start,
                               std::int64_t now_ms) {
  const std::uint64_t number = next_number_++;
  Entry& entry = entries_[number];
  entry.row.number = number;
  entry.row.id = start.id;
  entry.row.client = ClientName(start.client);
  entry.row.path = start.path;
  entry.row.started_ms = now_ms;
  entry.prompt_tokens = static_cast<int>(start.prompt.size());
  entry.row.job.prompt_tokens = entry.prompt_tokens;
  if (!start.prompt.empty()) {
    Lane& lane = LaneFor(start, now_ms);
    lane.running = number;
    entry.row.lane = lane.view.id;
  }
  Forget();
  return entry;
}

PageLog::Entry* PageLog::Find(std::uint64_t number) {
  const auto at = entries_.find(number);
  return at == entries_.end() ? nullptr : &at->second;
}

PageLog::Lane* PageLog::LaneOf(const Entry& entry) {
  const auto at = lanes_.find(entry.row.lane);
  const bool is_its = at != lanes_.end() &&
                      at->second.running == entry.row.number &&
                      entry.row.number != 0;
  return is_its ? &at->second : nullptr;
}

void PageLog::End(Entry& entry, const PageRequestEnd& end,
                  std::int64_t now_ms) {
  if (entry.row.status != 0) return;
  entry.row.status = end.status == 0 ? 500 : end.status;
  entry.row.fault = end.fault;
  // A job that never began tells nothing of its prompt.
  entry.row.job = end.job;
  if (end.job.prompt_tokens == 0) {
    entry.row.job.prompt_tokens = entry.prompt_tokens;
  }
  entry.row.completion_tokens = end.completion_tokens;
  Lane* lane = LaneOf(entry);
  if (lane == nullptr) return;
  lane->running = 0;
  lane->ended_ms = now_ms;
  lane->view.since_ms = now_ms;
  lane->view.generated = end.completion_tokens;
  lane->kept_tokens = static_cast<std::uint64_t>(
      end.job.reused_tokens + end.job.computed_tokens + end.completion_tokens);
  // Nothing was computed: the conversation is not there.
  if (lane->kept_tokens == 0) lanes_.erase(entry.row.lane);
}

void PageLog::Forget() {
  std::size_t ended = 0;
  for (const auto& [number, entry] : entries_) {
    ended += entry.row.status != 0 ? 1 : 0;
  }
  for (auto at = entries_.begin(); ended > kRequestsMax;) {
    if (at->second.row.status == 0) {
      ++at;
      continue;
    }
    at = entries_.erase(at);
    --ended;
  }
  std::vector<std::pair<std::int64_t, std::uint64_t>> resting;  // end, id
  for (const auto& [id, lane] : lanes_) {
    if (lane.running == 0) resting.emplace_back(lane.ended_ms, id);
  }
  std::sort(resting.begin(), resting.end());
  for (std::size_t i = 0; i + kLanesMax < resting.size(); ++i) {
    lanes_.erase(resting[i].second);
  }
}

}  // namespace hearth::serve
