#include "engine/states/state_plan.h"

#include <algorithm>
#include <bit>

#include "cache/states/state_layout.h"

namespace hearth {
namespace {

constexpr int kGridMost = 8192;
// Steps of a prefill are not made shorter for it.
constexpr int kGridLeast = 512;
// So few tokens in front of a prompt's end cost no more than one.
constexpr int kClose = 32;

}  // namespace

int StateGrid(const KvSpec& spec) {
  const std::uint64_t states = StateLayout(spec.states).bytes();
  const std::uint64_t token =
      std::max<std::uint64_t>(1, spec.bytes_per_token());
  const std::uint64_t wanted = std::min<std::uint64_t>(
      kGridMost, std::bit_ceil(std::max<std::uint64_t>(1, 2 * states / token)));
  const int step = spec.block_tokens;
  const int grid = std::max({step, kGridLeast, static_cast<int>(wanted)});
  // A block need not be a power of two.
  return grid / step * step;
}

std::vector<int> PlanStates(const KvSpec& spec, const StatePlanInput& input) {
  std::vector<int> stops;
  const bool at_blocks = input.at_blocks || spec.quantised();
  const auto add = [&](int n) {
    if (at_blocks) n = n / spec.block_tokens * spec.block_tokens;
    if (n > input.n_have && n < input.n_total) stops.push_back(n);
  };
  const auto marks = input.marks;
  if (!marks.empty()) add(marks.front());
  for (std::size_t back = 1; back <= marks.size(); back *= 2) {
    add(marks[marks.size() - back]);
  }
  const int grid = StateGrid(spec);
  for (int n = (input.n_have / grid + 1) * grid; n < input.n_total; n += grid) {
    add(n);
  }
  add(input.n_branch);
  // The last token's block may be sealed by the time that it is wanted.
  if (at_blocks) add(input.n_total - 1);
  std::sort(stops.begin(), stops.end());
  stops.erase(std::unique(stops.begin(), stops.end()), stops.end());
  const int last = input.n_total - 1;
  const bool close = std::any_of(marks.begin(), marks.end(), [&](int n) {
    return n < input.n_total && n >= input.n_total - kClose;
  });
  if (last > input.n_have && (!close || stops.empty()) &&
      (stops.empty() || stops.back() < last)) {
    stops.push_back(last);
  }
  return stops;
}

std::vector<int> MarksAtControlTokens(const Tokenizer& tokenizer,
                                      std::span<const std::int32_t> tokens) {
  std::vector<int> marks;
  std::size_t first = 0;
  const auto opens = [&](std::size_t i) {
    return tokenizer.IsSpecial(tokens[i]) && !tokenizer.IsEnd(tokens[i]) &&
           tokenizer.bos_id() != tokens[i];
  };
  while (first < tokens.size() && !opens(first)) ++first;
  for (std::size_t i = first + 1; i < tokens.size(); ++i) {
    if (tokens[i] == tokens[first]) marks.push_back(static_cast<int>(i));
  }
  return marks;
}

}  // namespace hearth
