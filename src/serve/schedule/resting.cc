#include "serve/schedule/resting.h"

#include <algorithm>
#include <utility>

namespace hearth::serve {

void Resting::Add(std::unique_ptr<Sequence> sequence,
                  const std::string& key_space) {
  if (n_max_ == 0) {
    (void)sequence->TryPersist();
    return;
  }
  One one{std::move(sequence), key_space, {}, false};
  one.saved = one.sequence->TryPersist();
  one.tokens = one.sequence->tokens();
  one.sequence->Rest();
  if (one.tokens.empty()) return;
  all_.push_back(std::move(one));
  if (size() > n_max_) all_.pop_front();
}

std::unique_ptr<Sequence> Resting::Take(std::span<const std::int32_t> prompt,
                                        const std::string& key_space) {
  auto best = all_.end();
  for (auto one = all_.begin(); one != all_.end(); ++one) {
    if (one->key_space != key_space || one->tokens.size() > prompt.size() ||
        !std::equal(one->tokens.begin(), one->tokens.end(), prompt.begin())) {
      continue;
    }
    if (best == all_.end() || one->tokens.size() >= best->tokens.size()) {
      best = one;
    }
  }
  if (best == all_.end()) return nullptr;
  std::unique_ptr<Sequence> sequence = std::move(best->sequence);
  all_.erase(best);
  return sequence;
}

void Resting::Persist() {
  for (One& one : all_) {
    if (!one.saved && !(one.saved = one.sequence->TryPersist())) return;
  }
}

bool Resting::has_unsaved() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const One& one) { return !one.saved; });
}

}  // namespace hearth::serve
