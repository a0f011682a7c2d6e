// What eviction is worth over a month: recorded sessions of coding agents are
// spread over 30 days and played against a store of limited size, with the plan
// that the store itself deletes by (store/budget/eviction_plan.h), with least
// recently used, and with the choice that knows the future.
//
//   eviction_sim TRACE DAYS TOKENS...    TOKENS: sizes of the store
//
// TRACE: a line of JSON for each session, {"tool_tokens", "system_tokens",
// "block_size", "requests": [{"t": seconds, "in": tokens, "hash_runs":
// [[first, count]...]}]}; "-" reads standard input. Sessions with the same
// tools and system prompt share these; nothing else is shared.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "agent_trace.h"
#include "base/hash.h"
#include "store/budget/eviction_plan.h"

namespace hearth {
namespace {

enum class Policy { kWorth, kLeastRecent, kFuture };

struct Outcome {
  double n_hit = 0, n_asked = 0, n_written = 0;
};

class Store {
 public:
  Store(const Trace& trace, Policy policy, double budget)
      : trace_(trace),
        policy_(policy),
        budget_(budget),
        entries_(trace.ids.size()) {
    if (policy != Policy::kFuture) return;
    next_.resize(trace.ids.size());
    for (std::size_t i = trace.requests.size(); i-- > 0;) {
      for (const int block : trace.requests[i].blocks) {
        next_[Index(block)].push_back(static_cast<std::uint32_t>(i));
      }
      const int before = trace.requests[i].before;
      if (before < 0) continue;
      const int tail = trace.requests[Index(before)].tail;
      if (tail >= 0)
        next_[Index(tail)].push_back(static_cast<std::uint32_t>(i));
    }
  }

  Outcome Play() {
    for (std::size_t i = 0; i < trace_.requests.size(); ++i) Serve(i);
    return outcome_;
  }

 private:
  struct Entry {
    double used_s = 0, written_s = 0;
    std::size_t depth = 0;
    bool stored = false;
  };
  struct Prompt {
    std::size_t request;
    double used_s;
  };

  static std::size_t Index(int number) {
    return static_cast<std::size_t>(number);
  }

  void Serve(std::size_t i) {
    const Request& request = trace_.requests[i];
    outcome_.n_asked += request.n_tokens;
    std::size_t n = 0;
    while (n < request.blocks.size() &&
           entries_[Index(request.blocks[n])].stored) {
      Touch(request.blocks[n], request.t_s, n);
      ++n;
    }
    outcome_.n_hit += static_cast<double>(n) * trace_.block_tokens;
    if (request.before >= 0) {
      const Request& before = trace_.requests[Index(request.before)];
      if (n == before.blocks.size() && before.tail >= 0 &&
          entries_[Index(before.tail)].stored) {
        Touch(before.tail, request.t_s, n);
        outcome_.n_hit += trace_.n_tokens[Index(before.tail)];
      }
    }
    Save(i);
  }

  void Touch(int number, double t_s, std::size_t depth) {
    // Each step into a chain is a microsecond older, as in the store.
    entries_[Index(number)].used_s = t_s - static_cast<double>(depth) * 1e-6;
  }

  // As much from the beginning as there can be room for.
  void Save(std::size_t i) {
    const Request& request = trace_.requests[i];
    std::vector<int> chain = request.blocks;
    if (request.tail >= 0) chain.push_back(request.tail);
    double n_chain = 0, n_new = 0;
    std::size_t n = 0;
    for (; n < chain.size(); ++n) {
      const int n_tokens = trace_.n_tokens[Index(chain[n])];
      if (n_chain + n_tokens > budget_) break;
      n_chain += n_tokens;
      if (!entries_[Index(chain[n])].stored) n_new += n_tokens;
    }
    const bool whole = n == chain.size();
    chain.resize(n);
    if (n_stored_ + n_new > budget_) {
      MakeRoom(i, chain, n_stored_ + n_new - budget_ + budget_ / 16);
    }
    for (std::size_t k = 0; k < chain.size(); ++k) {
      Entry& entry = entries_[Index(chain[k])];
      if (entry.stored) continue;
      entry = {request.t_s - static_cast<double>(k) * 1e-6, request.t_s, k,
               true};
      stored_.push_back(chain[k]);
      n_stored_ += trace_.n_tokens[Index(chain[k])];
      outcome_.n_written += trace_.n_tokens[Index(chain[k])];
    }
    if (whole) prompts_.push_back({i, request.t_s});
  }

  void MakeRoom(std::size_t now, const std::vector<int>& chain, double wanted) {
    kept_.assign(chain.begin(), chain.end());
    std::sort(kept_.begin(), kept_.end());
    const auto order =
        policy_ == Policy::kWorth ? WorthOrder(now) : KeyOrder(now);
    for (const std::size_t file : order) {
      if (wanted <= 0) break;
      if (file >= trace_.ids.size()) {
        prompts_[file - trace_.ids.size()].request = kGone;
        continue;
      }
      entries_[file].stored = false;
      n_stored_ -= trace_.n_tokens[file];
      wanted -= trace_.n_tokens[file];
    }
    std::erase_if(stored_, [&](int b) { return !entries_[Index(b)].stored; });
    std::erase_if(prompts_,
                  [](const Prompt& prompt) { return prompt.request == kGone; });
  }

  bool IsKept(int number) const {
    return std::binary_search(kept_.begin(), kept_.end(), number);
  }

  static std::int64_t Ns(double t_s) {
    return static_cast<std::int64_t>(t_s * 1e9);
  }

  std::vector<std::size_t> WorthOrder(std::size_t now) const {
    EvictionPlan plan;
    for (const int number : stored_) {
      plan.AddBlock(trace_.ids[Index(number)],
                    {.file = Index(number),
                     .last_use_ns = Ns(entries_[Index(number)].used_s),
                     .is_kept = IsKept(number)});
    }
    for (std::size_t p = 0; p < prompts_.size(); ++p) {
      const PromptHeader header =
          HeaderOf(trace_.requests[prompts_[p].request]);
      plan.AddPrompt(&header,
                     {.file = trace_.ids.size() + p,
                      .last_use_ns = Ns(prompts_[p].used_s)},
                     /*pinned=*/false);
    }
    plan.PlaceTails([&](std::size_t file) {
      return entries_[file].used_s > entries_[file].written_s + 2;
    });
    const auto parent = [&](std::size_t file) -> std::optional<Digest> {
      const int before = trace_.parents[file];
      if (before < 0) return std::nullopt;
      return trace_.ids[Index(before)];
    };
    plan.PlaceLoose(parent, parent);
    return plan.Order({}, Ns(trace_.requests[now].t_s));
  }

  PromptHeader HeaderOf(const Request& request) const {
    PromptHeader header;
    header.block_tokens = trace_.block_tokens;
    std::uint64_t end = 0;
    const auto add = [&](int number) {
      end += static_cast<std::uint64_t>(trace_.n_tokens[Index(number)]);
      header.entries.push_back({.id = trace_.ids[Index(number)], .end = end});
    };
    for (const int block : request.blocks) add(block);
    if (request.tail >= 0) add(request.tail);
    return header;
  }

  std::vector<std::size_t> KeyOrder(std::size_t now) {
    std::vector<std::tuple<double, std::size_t, std::size_t>> keys;
    for (const int number : stored_) {
      if (IsKept(number)) continue;
      const Entry& entry = entries_[Index(number)];
      const double key = policy_ == Policy::kFuture
                             ? -NextUse(Index(number), now)
                             : entry.used_s;
      keys.emplace_back(key, ~entry.depth, Index(number));
    }
    std::sort(keys.begin(), keys.end());
    std::vector<std::size_t> order;
    for (const auto& key : keys) order.push_back(std::get<2>(key));
    return order;
  }

  double NextUse(std::size_t number, std::size_t now) {
    auto& uses = next_[number];  // the last is the next
    while (!uses.empty() && uses.back() <= now) uses.pop_back();
    return uses.empty() ? std::numeric_limits<double>::max()
                        : static_cast<double>(uses.back());
  }

  static constexpr std::size_t kGone = std::numeric_limits<std::size_t>::max();

  const Trace& trace_;
  Policy policy_;
  double budget_, n_stored_ = 0;
  std::vector<Entry> entries_;
  std::vector<int> stored_, kept_;
  std::vector<Prompt> prompts_;
  std::vector<std::vector<std::uint32_t>> next_;
  Outcome outcome_;
};

void Report(const Trace& trace, double budget) {
  const std::pair<const char*, Policy> policies[] = {
      {"worth (hearth)", Policy::kWorth},
      {"least recently used", Policy::kLeastRecent},
      {"knows the future", Policy::kFuture}};
  for (const auto& [name, policy] : policies) {
    const Outcome outcome = Store(trace, policy, budget).Play();
    std::printf("| %.0fk | %s | %.2f %% | %.1f |\n", budget / 1000, name,
                100 * outcome.n_hit / outcome.n_asked, outcome.n_written / 1e6);
    std::fflush(stdout);
  }
}

int Run(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: eviction_sim TRACE DAYS TOKENS...\n");
    return 2;
  }
  std::ifstream file;
  if (std::strcmp(argv[1], "-") != 0) file.open(argv[1]);
  std::istream& in = std::strcmp(argv[1], "-") != 0 ? file : std::cin;
  TraceReader reader(std::atof(argv[2]));
  for (std::string line; std::getline(in, line);) {
    if (const auto added = reader.Add(line); !added.ok()) {
      std::fprintf(stderr, "%s\n", added.error().message.c_str());
      return 1;
    }
  }
  const Trace trace = reader.Take();
  std::printf("%zu requests, %zu blocks\n\n", trace.requests.size(),
              trace.ids.size());
  std::printf(
      "| store, tokens | policy | tokens found | written, M tokens |\n");
  std::printf("|---:|---|---:|---:|\n");
  const auto unlimited = std::numeric_limits<double>::max();
  for (int i = 3; i < argc; ++i) Report(trace, std::atof(argv[i]));
  const Outcome all = Store(trace, Policy::kLeastRecent, unlimited).Play();
  std::printf("| no limit | | %.2f %% | %.1f |\n",
              100 * all.n_hit / all.n_asked, all.n_written / 1e6);
  return 0;
}

}  // namespace
}  // namespace hearth

int main(int argc, char** argv) { return hearth::Run(argc, argv); }
