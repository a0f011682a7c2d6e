#include "serve/page/page_state_json.h"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <vector>

namespace hearth::serve {
namespace {

using Json = nlohmann::ordered_json;

std::string Line(const Json& json) {
  // Names come from outside and may be no UTF-8.
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// A tenth is enough for people, and short.
double Tenth(double value) { return std::round(value * 10) / 10; }

Json Tenths(const std::vector<double>& values) {
  Json out = Json::array();
  for (const double value : values) {
    out.push_back(value < 0 ? Json() : Json(Tenth(value)));
  }
  return out;
}

const char* NameOf(Place place) {
  switch (place) {
    case Place::kTodo:
      return "todo";
    case Place::kComputed:
      return "computed";
    case Place::kMemory:
      return "memory";
    case Place::kMapped:
      return "mapped";
    case Place::kFetched:
      return "fetched";
    case Place::kDisk:
      return "disk";
  }
  return "";
}

const char* NameOf(LaneState state) {
  switch (state) {
    case LaneState::kWaiting:
      return "waiting";
    case LaneState::kMatching:
      return "matching";
    case LaneState::kPrefill:
      return "prefill";
    case LaneState::kDecode:
      return "decode";
    case LaneState::kPaused:
      return "paused";
    case LaneState::kResting:
      return "resting";
    case LaneState::kStored:
      return "stored";
    case LaneState::kGone:
      return "gone";
  }
  return "";
}

Json ToJson(const PageMeters& m) {
  return {
      {"memory_held", m.memory_held},     {"memory_mapped", m.memory_mapped},
      {"memory_budget", m.memory_budget}, {"has_store", m.has_store},
      {"disk_used", m.disk_used},         {"disk_budget", m.disk_budget},
      {"save_queue", m.save_queue},       {"connections", m.connections},
      {"store_version", m.store_version}};
}

Json ToJson(const PageToday& t) {
  return {{"requests", t.requests},
          {"prompt_tokens", t.prompt_tokens},
          {"reused_tokens", t.reused_tokens},
          {"completion_tokens", t.completion_tokens},
          {"seconds_spared", Tenth(t.seconds_spared)}};
}

Json ToJson(const PageRates& r) {
  return {{"prefill", Tenth(r.prefill)},
          {"decode", Tenth(r.decode)},
          {"running", r.running},
          {"waiting", r.waiting},
          {"resting", r.resting}};
}

Json ToJson(const PageLane& lane) {
  Json parts = Json::array();
  for (const LanePart& part : lane.parts) {
    parts.push_back(Json::array({NameOf(part.place), part.tokens}));
  }
  return {{"id", lane.id},
          {"state", NameOf(lane.state)},
          {"client", lane.client},
          {"label", lane.label},
          {"parts", std::move(parts)},
          {"prompt_tokens", lane.prompt_tokens},
          {"reused_tokens", lane.reused_tokens},
          {"generated", lane.generated},
          {"turns", lane.turns},
          {"rate", Tenth(lane.rate)},
          {"miss", lane.miss},
          {"since_ms", lane.since_ms}};
}

Json ToJson(const PageRequest& r) {
  return {{"number", r.number},
          {"lane", r.lane},
          {"id", r.id},
          {"client", r.client},
          {"path", r.path},
          {"started_ms", r.started_ms},
          {"status", r.status},
          {"fault", r.fault},
          {"tier", r.tier},
          {"miss", r.miss},
          {"prompt_tokens", r.job.prompt_tokens},
          {"reused_tokens", r.job.reused_tokens},
          {"computed_tokens", r.job.computed_tokens},
          {"written_tokens", r.job.written_tokens},
          {"completion_tokens", r.completion_tokens},
          {"preemptions", r.job.preemptions},
          {"queue_ms", Tenth(r.job.queue_ms)},
          {"lookup_ms", Tenth(r.job.lookup_ms)},
          {"prefill_ms", Tenth(r.job.prefill_ms)},
          {"ttft_ms", Tenth(r.job.ttft_ms)},
          {"decode_ms", Tenth(r.job.decode_ms)},
          {"kv_bytes", r.job.kv_physical_bytes}};
}

Json ToJson(const PageSeries& s) {
  return {{"step_ms", 5000},
          {"ttft_ms", Tenths(s.ttft_ms)},
          {"gap_ms", Tenths(s.gap_ms)},
          {"tokens", Tenths(s.tokens)}};
}

template <typename List>
Json ToArray(const List& list) {
  Json out = Json::array();
  for (const auto& item : list) out.push_back(ToJson(item));
  return out;
}

void AddLaneChanges(const std::vector<PageLane>& before,
                    const std::vector<PageLane>& after, Json& out) {
  std::unordered_map<std::uint64_t, const PageLane*> known;
  for (const PageLane& lane : before) known[lane.id] = &lane;
  Json changed = Json::array();
  for (const PageLane& lane : after) {
    const auto at = known.find(lane.id);
    if (at == known.end() || !(*at->second == lane)) {
      changed.push_back(ToJson(lane));
    }
    if (at != known.end()) known.erase(at);
  }
  Json gone = Json::array();
  for (const PageLane& lane : before) {
    if (known.count(lane.id) > 0) gone.push_back(lane.id);
  }
  if (!changed.empty()) out["lanes"] = std::move(changed);
  if (!gone.empty()) out["lanes_gone"] = std::move(gone);
}

}  // namespace

std::string SnapshotJson(const PageModel& model, const PageState& state) {
  return Line({{"sequence", state.sequence},
               {"now_ms", state.now_ms},
               {"model",
                {{"id", model.id},
                 {"context_tokens", model.context_tokens},
                 {"block_tokens", model.block_tokens}}},
               {"meters", ToJson(state.meters)},
               {"today", ToJson(state.today)},
               {"rates", ToJson(state.rates)},
               {"lanes", ToArray(state.lanes)},
               {"requests", ToArray(state.requests)},
               {"series", ToJson(state.series)}});
}

std::optional<std::string> ChangeJson(const PageState& before,
                                      const PageState& after) {
  Json out = Json::object();
  if (before.meters != after.meters) out["meters"] = ToJson(after.meters);
  if (before.today != after.today) out["today"] = ToJson(after.today);
  if (before.rates != after.rates) out["rates"] = ToJson(after.rates);
  AddLaneChanges(before.lanes, after.lanes, out);
  Json requests = Json::array();
  for (const PageRequest& request : after.requests) {
    if (std::find(after.touched.begin(), after.touched.end(), request.number) !=
        after.touched.end()) {
      requests.push_back(ToJson(request));
    }
  }
  if (!requests.empty()) out["requests"] = std::move(requests);
  if (before.series != after.series) out["series"] = ToJson(after.series);
  if (out.empty()) return std::nullopt;
  out["sequence"] = after.sequence;
  out["now_ms"] = after.now_ms;
  return Line(out);
}

}  // namespace hearth::serve
