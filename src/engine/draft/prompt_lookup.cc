#include <algorithm>

#include "engine/draft/drafter.h"

namespace hearth {
namespace {

// Shorter repetitions are chance.
constexpr int kMatchMin = 3;
// A match of this length is as good as a longer one.
constexpr int kMatchMax = 24;

struct Match {
  std::size_t next = 0;  // the place after it
  int length = 0;
};

// The longest earlier stretch that equals the end of `tokens`; of equally long
// ones the latest. One pass over the history, which compares the last token
// alone nearly everywhere.
Match FindRepetition(std::span<const std::int32_t> tokens) {
  Match best;
  const std::size_t n = tokens.size();
  for (std::size_t end = n - 1; end > 0 && best.length < kMatchMax; --end) {
    if (tokens[end - 1] != tokens[n - 1]) continue;
    int length = 1;
    while (length < kMatchMax && static_cast<std::size_t>(length) < end &&
           tokens[end - 1 - static_cast<std::size_t>(length)] ==
               tokens[n - 1 - static_cast<std::size_t>(length)]) {
      ++length;
    }
    if (length > best.length) best = {end, length};
  }
  return best;
}

class PromptLookup final : public Drafter {
 public:
  Result<void> Propose(const DraftRequest& request,
                       std::vector<DraftToken>& drafts) override {
    const Match match = FindRepetition(request.tokens);
    if (match.length < kMatchMin) return {};
    // No more guesses than tokens that speak for them.
    const auto n =
        static_cast<std::size_t>(std::min(request.n_tokens_max, match.length));
    for (std::size_t i = 0; i < n; ++i) {
      const std::size_t at = match.next + i;
      // Past the end, what was guessed is the history: a loop goes on.
      drafts.push_back({at < request.tokens.size()
                            ? request.tokens[at]
                            : drafts[at - request.tokens.size()].id});
    }
    return {};
  }
  Result<std::unique_ptr<Drafter>> Fork() override {
    return std::unique_ptr<Drafter>(std::make_unique<PromptLookup>());
  }
};

class PromptLookupSource final : public DraftSource {
 public:
  std::string Describe() const override { return "prompt lookup"; }
  Result<std::unique_ptr<Drafter>> NewDrafter(const SessionOptions&) override {
    return std::unique_ptr<Drafter>(std::make_unique<PromptLookup>());
  }
};

}  // namespace

std::unique_ptr<DraftSource> MakePromptLookup() {
  return std::make_unique<PromptLookupSource>();
}

}  // namespace hearth
