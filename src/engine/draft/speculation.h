// Speculative decoding on the KV cache: guesses are verified in one append, the
// rejected ones are rewound. docs/speculation.md.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cache/kv_sequence.h"
#include "engine/draft/drafter.h"
#include "engine/emitter.h"
#include "model/forward.h"

namespace hearth {

// How many tokens to guess: about as many as were right lately, and none for a
// while when nothing was right for long. Decided by counts, never by time, so
// that a run can be repeated.
class DraftLength {
 public:
  explicit DraftLength(int n_max);
  // For the next step; 0: do not guess.
  int Next();
  void Report(int n_drafted, int n_accepted);

 private:
  int n_max_;
  int n_;             // 1..n_max
  int n_pause_ = 0;   // steps to come without a guess
  int n_misses_ = 0;  // in a row
};

// A session's state, lent for one step.
struct LiveSequence {
  Forward& forward;
  KvSequence& kv;
  std::vector<std::int32_t>& tokens;  // what kv holds
  std::vector<float>& logits;         // of the last of them
  std::vector<float>& hidden;         // what they were computed from
  int context_tokens;
  const Session::Progress& on_draft_prefill;
};

class Speculation {
 public:
  Speculation(std::unique_ptr<Drafter> drafter, int n_tokens_max)
      : drafter_(std::move(drafter)),
        n_tokens_max_(n_tokens_max),
        length_(n_tokens_max) {}

  Drafter& drafter() { return *drafter_; }

  // Appends `id` and what of the guesses behind it is right, emits these and
  // the token after them. That token, to be appended next; nothing when the
  // answer is over. State and report are as if every token had been a step of
  // its own. `enabled` false: no guesses. After an error the state is as
  // before.
  Result<std::optional<std::int32_t>> Step(std::int32_t id, bool enabled,
                                           const LiveSequence& live,
                                           Emitter& emitter);

  Result<std::unique_ptr<Speculation>> Fork() const;

 private:
  Result<void> Draft(std::int32_t id, const LiveSequence& live,
                     Emitter& emitter);

  std::unique_ptr<Drafter> drafter_;
  int n_tokens_max_;
  DraftLength length_;
  std::vector<DraftToken> drafts_;
  std::vector<std::int32_t> batch_;
  std::vector<float> rows_;         // logits of the batch: [n][vocab_size]
  std::vector<float> hidden_rows_;  // what they were computed from, if asked
  Distribution p_;
};

}  // namespace hearth
