#include "engine/sampling/dry.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/sampling/logit.h"
#include "engine/sampling/window.h"

namespace hearth {
namespace {

// For each i: how many tokens before the end of `tokens` and before the end of
// its first n - i tokens are the same (Gusfield's Z function, from behind).
std::vector<int> RepeatedEnds(std::span<const std::int32_t> tokens) {
  const auto n = static_cast<int>(tokens.size());
  const auto at = [&](int i) {
    return tokens[static_cast<std::size_t>(n - 1 - i)];
  };
  std::vector<int> z(tokens.size(), 0);
  int left = 0, right = 0;  // the match that reaches farthest
  for (int i = 1; i < n; ++i) {
    int& length = z[static_cast<std::size_t>(i)];
    if (i < right) {
      length = std::min(right - i, z[static_cast<std::size_t>(i - left)]);
    }
    while (i + length < n && at(length) == at(i + length)) ++length;
    if (i + length > right) {
      left = i;
      right = i + length;
    }
  }
  return z;
}

// The end of the last breaker that begins before `begins_before` in `text`; 0:
// there is none.
std::size_t BreakerEnd(std::span<const std::string> breakers,
                       const std::string& text, std::size_t begins_before) {
  std::size_t end = 0;
  for (const std::string& breaker : breakers) {
    const std::size_t at = text.rfind(breaker, begins_before - 1);
    if (at != std::string::npos) end = std::max(end, at + breaker.size());
  }
  return end;
}

}  // namespace

bool HasDry(const SamplingOptions& options) {
  return options.dry_multiplier > 0 && options.dry_penalty_last_n != 0;
}

int TokensBehindBreaker(std::span<const std::string> breakers,
                        const Tokenizer& tokenizer,
                        std::span<const std::int32_t> tokens) {
  std::size_t longest = 0;
  for (const std::string& breaker : breakers) {
    longest = std::max(longest, breaker.size());
  }
  const auto n = static_cast<int>(tokens.size());
  if (longest == 0) return n;
  std::vector<std::size_t> sizes;  // of the tokens seen, from behind
  std::string head;  // of the text behind: as much as a breaker may reach into
  for (int i = n - 1; i >= 0; --i) {
    std::string text =
        tokenizer.TokenBytes(tokens[static_cast<std::size_t>(i)]);
    const std::size_t size = text.size();
    text += head;
    const std::size_t end = size == 0 ? 0 : BreakerEnd(breakers, text, size);
    if (end > 0) {
      // The tokens that the breaker reaches into are not behind it.
      int n_behind = n - 1 - i;
      for (std::size_t covered = size; covered < end; --n_behind) {
        covered += sizes[static_cast<std::size_t>(n_behind - 1)];
      }
      return n_behind;
    }
    sizes.push_back(size);
    head = text.substr(0, longest - 1);
  }
  return n;
}

void PenaliseRepetitions(const SamplingOptions& options,
                         const Tokenizer* tokenizer,
                         std::span<const std::int32_t> before,
                         std::span<float> logits) {
  const auto tokens = Newest(before, options.dry_penalty_last_n);
  const auto n = static_cast<int>(tokens.size());
  const int longest = tokenizer == nullptr
                          ? n
                          : TokensBehindBreaker(options.dry_sequence_breakers,
                                                *tokenizer, tokens);
  if (longest < options.dry_allowed_length) return;
  const std::vector<int> z = RepeatedEnds(tokens);
  std::unordered_map<std::int32_t, int> repeated;  // tokens before the next one
  for (int i = 1; i < n; ++i) {
    const int length = std::min(longest, z[static_cast<std::size_t>(i)]);
    if (length < options.dry_allowed_length) continue;
    int& most = repeated[tokens[static_cast<std::size_t>(n - i)]];
    most = std::max(most, length);
  }
  for (const auto& [id, length] : repeated) {
    const auto at = static_cast<std::size_t>(id);
    if (at >= logits.size()) continue;
    logits[at] =
        ToLogit(logits[at] - options.dry_multiplier *
                                 std::pow(options.dry_base,
                                          length - options.dry_allowed_length));
  }
}

}  // namespace hearth
