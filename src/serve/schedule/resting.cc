#include "serve/schedule/resting.h"

#include <algorithm>
#include <utility>

namespace hearth::serve {

void Resting::Add(std::unique_ptr<Sequence> sequence,
                  const std::string& key_space, double now_ms) {
  if (n_max_ == 0) {
    (void)sequence->TryPersist(/*rests=*/true);
    return;
  }
  One one{std::move(sequence), key_space, {}, false, !has_states_, now_ms};
  one.saved = one.sequence->TryPersist(/*rests=*/false);
  one.tokens = one.sequence->tokens();
  one.sequence->Rest();
  if (one.tokens.empty()) return;
  all_.push_back(std::move(one));
  if (size() <= n_max_) return;
  One& oldest = all_.front();
  if (!oldest.settled) (void)oldest.sequence->TryPersist(/*rests=*/true);
  all_.pop_front();
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

void Resting::Persist(double now_ms) {
  for (One& one : all_) {
    const bool settles = !one.settled && now_ms - one.since_ms >= kSettleMs;
    if (one.saved && !settles) continue;
    one.saved = one.sequence->TryPersist(settles);
    if (!one.saved) return;
    one.settled = one.settled || settles;
  }
}

void Resting::Settle() {
  for (One& one : all_) {
    if (!one.settled) one.settled = one.sequence->TryPersist(/*rests=*/true);
  }
}

bool Resting::has_unsaved() const {
  return std::any_of(all_.begin(), all_.end(),
                     [](const One& one) { return !one.saved || !one.settled; });
}

}  // namespace hearth::serve
