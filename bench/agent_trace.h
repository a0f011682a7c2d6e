// Recorded sessions of agents as one list of requests, their prompts as chains
// of numbered blocks. Its form: eviction_sim.cc.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash.h"
#include "base/json.h"

namespace hearth {

struct Request {
  double t_s = 0;
  int n_tokens = 0;
  std::vector<int> blocks = {};  // full ones, by number
  int tail = -1;                 // the partial block behind them, by number
  int before = -1;               // the request whose tail this one goes on with
};

struct Trace {
  int block_tokens = 64;
  std::vector<Request> requests;  // in the order of time
  std::vector<Digest> ids;        // of each block and tail
  std::vector<int> n_tokens;      // of each
  std::vector<int> parents;       // of each the block in front, or -1
};

// Numbers blocks by the chain before them.
class TraceReader {
 public:
  explicit TraceReader(double days) : days_(days) {}

  Result<void> Add(const std::string& line) {
    HEARTH_ASSIGN(const Json session, ParseJson(line, "trace"));
    HEARTH_ASSIGN(const auto step, JsonInt(session, "block_size", "trace"));
    HEARTH_ASSIGN(const auto tools, JsonInt(session, "tool_tokens", "trace"));
    HEARTH_ASSIGN(const auto system,
                  JsonInt(session, "system_tokens", "trace"));
    const Json* requests = JsonFind(session, "requests");
    if (step < 1 || requests == nullptr || !requests->is_array()) {
      return {Code::kCorrupt, "trace: a session without block_size, requests"};
    }
    trace_.block_tokens = static_cast<int>(step);
    // Sessions begin at any time of a day's twelve hours.
    const double day = static_cast<double>(rng_() % 1000) / 1000 * days_;
    start_s_ = std::floor(day) * 86400 + static_cast<double>(rng_() % 43200);
    shared_ = ToHex(Sha256()
                        .Field(static_cast<std::uint64_t>(tools))
                        .Field(static_cast<std::uint64_t>(system))
                        .Finish());
    n_shared_ = static_cast<std::size_t>((tools + system) / step);
    ++session_;
    for (const Json& request : *requests) HEARTH_TRY(AddRequest(request));
    return {};
  }

  Trace Take() {
    auto& all = trace_.requests;
    std::stable_sort(
        all.begin(), all.end(),
        [](const Request& a, const Request& b) { return a.t_s < b.t_s; });
    // Whose last full block and no more this one has: the tail behind it
    // serves.
    std::unordered_map<int, int> ends;
    for (std::size_t i = 0; i < all.size(); ++i) {
      for (auto at = all[i].blocks.rbegin(); at != all[i].blocks.rend(); ++at) {
        const auto found = ends.find(*at);
        if (found == ends.end()) continue;
        all[i].before = found->second;
        break;
      }
      if (!all[i].blocks.empty()) {
        ends[all[i].blocks.back()] = static_cast<int>(i);
      }
    }
    return std::move(trace_);
  }

 private:
  Result<void> AddRequest(const Json& json) {
    HEARTH_ASSIGN(const double t_s, JsonNumber(json, "t", "trace", 0));
    // A sub-agent's own list has no tokens.
    HEARTH_ASSIGN(const auto n_tokens, JsonInt(json, "in", "trace", 0));
    const Json* runs = JsonFind(json, "hash_runs");
    if (runs == nullptr || !runs->is_array() || n_tokens < 1) return {};
    Request request{.t_s = start_s_ + t_s,
                    .n_tokens = static_cast<int>(n_tokens)};
    const int step = trace_.block_tokens;
    const auto n_full = static_cast<std::size_t>(n_tokens / step);
    int before = -1;
    for (const Json& run : *runs) {
      if (!run.is_array() || run.size() != 2 || !run[0].is_number_integer() ||
          !run[1].is_number_integer()) {
        return {Code::kCorrupt, "trace: a run is [first, count]"};
      }
      const auto first = run[0].get<std::int64_t>();
      const auto end = first + run[1].get<std::int64_t>();
      for (auto id = first; id < end && request.blocks.size() < n_full; ++id) {
        before = Number(before, request.blocks.size(), id);
        request.blocks.push_back(before);
      }
    }
    if (request.blocks.size() < n_full) return {};  // the record is not whole
    if (n_tokens % step > 0) {
      request.tail = New(before, static_cast<int>(n_tokens % step));
    }
    trace_.requests.push_back(std::move(request));
    return {};
  }

  int Number(int before, std::size_t at, std::int64_t id) {
    const bool shared = at < n_shared_;
    const std::string key = shared ? shared_ + std::to_string(at)
                                   : std::to_string(session_) + " " +
                                         std::to_string(before) + " " +
                                         std::to_string(id);
    const auto [found, is_new] = numbers_.try_emplace(key, 0);
    if (is_new) found->second = New(before, trace_.block_tokens);
    return found->second;
  }

  int New(int before, int n_tokens) {
    trace_.ids.push_back(
        Sha256().Field(std::uint64_t{trace_.ids.size()}).Finish());
    trace_.n_tokens.push_back(n_tokens);
    trace_.parents.push_back(before);
    return static_cast<int>(trace_.ids.size()) - 1;
  }

  double days_;
  double start_s_ = 0;
  std::string shared_;
  std::size_t n_shared_ = 0;
  int session_ = 0;
  std::mt19937 rng_{1};
  std::unordered_map<std::string, int> numbers_;
  Trace trace_;
};

}  // namespace hearth
