#include "engine/states/state_saves.h"

#include <algorithm>

namespace hearth {

void StateSaves::NoteRewound(int n_tokens) {
  stored_.erase(stored_.upper_bound(n_tokens), stored_.end());
  std::erase_if(written_, [n_tokens](int n) { return n > n_tokens; });
}

void StateSaves::Forget() {
  stored_.clear();
  written_.clear();
}

StateSaves StateSaves::Fork() const {
  StateSaves fork = *this;
  fork.written_.clear();
  return fork;
}

StatesToSave StateSaves::Choose(const std::vector<StateCheckpointPtr>& kept,
                                int n_max, int n_prompt, When when) const {
  std::set<int> there = stored_;
  const auto before = [&](int n) {
    const auto at = there.lower_bound(n);
    return at == there.begin() ? 0 : *std::prev(at);
  };
  StateCheckpointPtr newest, newest_of_prompt;
  StatesToSave chosen;
  const auto choose = [&](const StateCheckpointPtr& one) {
    if (one == nullptr || !there.insert(one->n_tokens).second) return;
    chosen.states.push_back(one);
  };
  for (const StateCheckpointPtr& one : kept) {
    if (one->n_tokens > n_max) break;
    newest = one;
    // Behind its last token an equal prompt could not begin.
    if (one->n_tokens < n_prompt) newest_of_prompt = one;
    const int from = before(one->n_tokens);
    const int gap = from == 0 ? kFirstTokens : kGapTokens;
    if (one->n_tokens - from >= gap) choose(one);
  }
  if (when == When::kRest || when == When::kAnswer) choose(newest_of_prompt);
  if (when == When::kRest) choose(newest);
  if (when == When::kPrompt && there.empty()) choose(newest);
  std::sort(
      chosen.states.begin(), chosen.states.end(),
      [](const auto& a, const auto& b) { return a->n_tokens < b->n_tokens; });
  std::vector<int> written = written_;
  for (const auto& one : chosen.states) written.push_back(one->n_tokens);
  std::sort(written.begin(), written.end());
  // The older half at half the density: powers of two back from the end.
  while (written.size() > kWrittenMax) {
    bool thinned = false;
    for (std::size_t i = written.size() / 2; i > 1;
         i -= std::min<std::size_t>(2, i)) {
      const auto at = written.begin() + static_cast<std::ptrdiff_t>(i) - 1;
      if (*at % grid_ == 0) continue;
      chosen.dropped.push_back(*at);
      written.erase(at);
      thinned = true;
    }
    if (!thinned) break;
  }
  return chosen;
}

void StateSaves::NoteSaved(const StatesToSave& saved) {
  for (const StateCheckpointPtr& one : saved.states) {
    stored_.insert(one->n_tokens);
    written_.push_back(one->n_tokens);
  }
  std::sort(written_.begin(), written_.end());
  for (const int n : saved.dropped) {
    stored_.erase(n);
    std::erase(written_, n);
  }
}

}  // namespace hearth
