// Speculative decoding on the KV cache: guesses are verified in one append, the
// rejected ones are rewound. docs/speculation.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/draft/drafter.h"
#include "engine/session/answer/emitter.h"
#include "engine/session/history.h"

namespace hearth {

// How many tokens to guess: about as many as were right lately, and none for a
// while when nothing was right for long. Decided by counts, never by time, so
// that a run can be repeated.
class DraftLength {
 public:
  explicit DraftLength(int n_max);
  // For the next step; 0: do not guess.
  int Next();
  bool pauses() const { return n_pause_ > 0; }
  void Report(int n_drafted, int n_accepted);

 private:
  int n_max_;
  int n_;             // 1..n_max
  int n_pause_ = 0;   // steps to come without a guess
  int n_misses_ = 0;  // in a row
};

class Speculation {
 public:
  Speculation(std::unique_ptr<Drafter> drafter, int n_tokens_max)
      : drafter_(std::move(drafter)),
        n_tokens_max_(n_tokens_max),
        length_(n_tokens_max) {}

  Drafter& drafter() { return *drafter_; }

  // Before Propose, where others wait for the time: has the drafter read so
  // many tokens at most of a history that it lags behind. How many are left; 0
  // too when no guess will be asked for.
  Result<int> Read(std::int32_t id, int n_tokens_max, int n_room,
                   History& history, const Emitter& emitter);

  // The tokens of the next step, whose logits are all wanted: `id`, which was
  // sampled after `history`, and guesses for what follows it. `n_room`: how
  // many tokens may still come to the history. `n_guesses_max`: so many at
  // most; 0 always counts, more only where the number cannot change the text.
  // kCancelled when `on_draft_prefill` said so.
  Result<std::span<const std::int32_t>> Propose(
      std::int32_t id, int n_guesses_max, int n_room, History& history,
      const Session::Progress& on_draft_prefill, Emitter& emitter);

  // After that step: emits what of the guesses is right and the token after
  // them, and rewinds the rest. That token, to be appended next; nothing when
  // the answer is over. History and report are as if every token had been a
  // step of its own.
  std::optional<std::int32_t> Verify(History& history, Emitter& emitter);

  Result<std::unique_ptr<Speculation>> Fork() const;

 private:
  std::unique_ptr<Drafter> drafter_;
  int n_tokens_max_;
  DraftLength length_;
  std::vector<DraftToken> drafts_;
  std::vector<std::int32_t> batch_;
  Distribution p_;
};

}  // namespace hearth
