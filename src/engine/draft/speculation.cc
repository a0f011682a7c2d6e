#include "engine/draft/speculation.h"

#include <algorithm>
#include <limits>

#include "cache/states/sequence_states.h"
#include "model/forward.h"

namespace hearth {
namespace {

constexpr int kFirstLength = 4;
// Steps that were wrong from the first guess on before a pause.
constexpr int kMissesMax = 3;
constexpr int kPauseMax = 32;

// Tokens behind the next one that may be appended and dropped again: a
// quantised block cannot be cut, so none may be filled with guesses.
// And states can be cut back into a short step alone.
int TokensToRewind(const KvSequence& kv) {
  const int n = kv.spec().states.empty() ? std::numeric_limits<int>::max()
                                         : SequenceStates::kJournalTokens - 1;
  if (!kv.quantises()) return n;
  return std::min(n, kv.block_tokens() - kv.n_tokens() % kv.block_tokens() - 2);
}

// The token for `logits`: `draft` when it stands the test. Nothing when none
// may come.
std::optional<std::int32_t> VerifyOne(std::span<const float> logits,
                                      std::span<const std::int32_t> before,
                                      const DraftToken& draft, Sampler& sampler,
                                      Distribution& p) {
  sampler.Filter(logits, before, p);
  if (p.candidates.empty()) return std::nullopt;
  // A guess without a draw has q = 1, so that p decides alone: an ordinary
  // draw keeps it with its probability, and gives the very token that the same
  // seed gives without speculation.
  if (draft.q.candidates.empty()) return sampler.Draw(p);
  return sampler.AcceptOrDraw(p, draft.q, draft.id);
}

// Drops the first guess that the constraint forbids and all behind it: a step
// costs by the token.
void KeepAllowed(Sampler& sampler, std::vector<DraftToken>& drafts) {
  Sampler::Ahead ahead(sampler);
  const auto forbidden = std::find_if(
      drafts.begin(), drafts.end(),
      [&](const DraftToken& draft) { return !ahead.Keep(draft.id); });
  drafts.erase(forbidden, drafts.end());
}

}  // namespace

DraftLength::DraftLength(int n_max)
    : n_max_(n_max), n_(std::min(n_max, kFirstLength)) {}

int DraftLength::Next() {
  if (n_pause_ == 0) return n_;
  --n_pause_;
  return 0;
}

void DraftLength::Report(int n_drafted, int n_accepted) {
  if (n_accepted > 0) n_misses_ = 0;
  if (n_accepted == n_drafted) {
    n_ = std::min(n_max_, 2 * n_);
  } else if (n_accepted > 0) {
    n_ = std::min(n_max_, n_accepted + 1);
  } else {
    n_ = std::max(1, n_ / 2);
    if (++n_misses_ >= kMissesMax) {
      n_pause_ = std::min(kPauseMax, 1 << std::min(n_misses_ - kMissesMax, 5));
    }
  }
}

Result<int> Speculation::Read(std::int32_t id, int n_tokens_max, int n_room,
                              History& history, const Emitter& emitter) {
  const int n = std::min(
      {emitter.n_left() - 1, n_room - 1, TokensToRewind(history.kv())});
  if (n <= 0 || length_.pauses()) return 0;
  return history.With(id, [&](std::span<const std::int32_t> tokens) {
    return drafter_->Read(tokens, n_tokens_max);
  });
}

Result<std::span<const std::int32_t>> Speculation::Propose(
    std::int32_t id, int n_guesses_max, int n_room, History& history,
    const Session::Progress& on_draft_prefill, Emitter& emitter) {
  drafts_.clear();
  // Guesses that are drawn take part in the draws of the text: their number is
  // the answer's own affair, however many others there are.
  if (n_guesses_max > 0 && drafter_->draws() &&
      emitter.options().sampling.temperature > 0) {
    n_guesses_max = std::numeric_limits<int>::max();
  }
  const int n = n_guesses_max == 0
                    ? 0
                    : std::min({emitter.n_left() - 1, n_room - 1,
                                Forward::kStepTokensMax - 1, n_guesses_max,
                                TokensToRewind(history.kv()), length_.Next()});
  if (n > 0) {
    const auto hidden = history.Hidden(history.n_logits() - 1);
    HEARTH_TRY(history.With(id, [&](std::span<const std::int32_t> tokens) {
      return drafter_->Propose(
          {tokens, hidden, n, emitter.sampler(), on_draft_prefill}, drafts_);
    }));
    KeepAllowed(emitter.sampler(), drafts_);
  }
  batch_.assign(1, id);
  for (const DraftToken& draft : drafts_) batch_.push_back(draft.id);
  return std::span<const std::int32_t>(batch_);
}

std::optional<std::int32_t> Speculation::Verify(History& history,
                                                Emitter& emitter) {
  std::optional<std::int32_t> next;
  std::size_t i = 0;
  int n_accepted = 0;
  while (true) {
    const int row = static_cast<int>(i);
    const auto logits = history.Logits(row);
    const auto before = history.TokensBefore(row);
    const bool guessed = i < drafts_.size();
    const auto sampled =
        guessed ? VerifyOne(logits, before, drafts_[i], emitter.sampler(), p_)
                : emitter.sampler().Sample(logits, before);
    if (!sampled.has_value()) {
      next.reset();
      emitter.StopForConstraint();
      break;
    }
    const bool right = guessed && *sampled == drafts_[i].id;
    n_accepted += right;
    next = emitter.Emit(*sampled, logits);
    if (!right || !next.has_value()) break;
    ++i;
  }
  history.KeepRows(static_cast<int>(i) + 1);

  SpeculationReport& report = emitter.speculation();
  ++report.steps;
  report.drafted += static_cast<int>(drafts_.size());
  report.accepted += n_accepted;
  report.kv_physical_bytes = drafter_->kv_physical_bytes();
  if (!drafts_.empty()) {
    length_.Report(static_cast<int>(drafts_.size()), n_accepted);
  }
  return next;
}

Result<std::unique_ptr<Speculation>> Speculation::Fork() const {
  HEARTH_ASSIGN(auto drafter, drafter_->Fork());
  return std::make_unique<Speculation>(std::move(drafter), n_tokens_max_);
}

}  // namespace hearth
