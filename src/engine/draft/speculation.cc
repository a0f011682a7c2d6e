#include "engine/draft/speculation.h"

#include <algorithm>
#include <limits>

namespace hearth {
namespace {

constexpr int kFirstLength = 4;
// Steps that were wrong from the first guess on before a pause.
constexpr int kMissesMax = 3;
constexpr int kPauseMax = 32;

// Tokens behind the next one that may be appended and dropped again: a
// quantised block cannot be cut, so none may be filled with guesses.
int TokensToRewind(const KvSequence& kv) {
  if (!kv.quantises()) return std::numeric_limits<int>::max();
  return kv.block_tokens() - kv.n_tokens() % kv.block_tokens() - 2;
}

// The token for `logits`: `draft` when it stands the test.
std::int32_t Verify(std::span<const float> logits, const DraftToken& draft,
                    Sampler& sampler, Distribution& p) {
  sampler.Filter(logits, p);
  // A guess without a draw has q = 1, so that p decides alone: an ordinary
  // draw keeps it with its probability, and gives the very token that the same
  // seed gives without speculation.
  if (draft.q.candidates.empty()) return sampler.Draw(p);
  return sampler.AcceptOrDraw(p, draft.q, draft.id);
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

Result<void> Speculation::Draft(std::int32_t id, const LiveSequence& live,
                                Emitter& emitter) {
  const int n = std::min(
      {emitter.n_left() - 1, live.context_tokens - live.kv.n_tokens() - 1,
       Forward::kStepTokensMax - 1, TokensToRewind(live.kv), length_.Next()});
  if (n <= 0) return {};
  live.tokens.push_back(id);
  const auto proposed = drafter_->Propose(
      {live.tokens, live.hidden, n, emitter.sampler(), live.on_draft_prefill},
      drafts_);
  live.tokens.pop_back();
  return proposed;
}

Result<std::optional<std::int32_t>> Speculation::Step(std::int32_t id,
                                                      bool enabled,
                                                      const LiveSequence& live,
                                                      Emitter& emitter) {
  drafts_.clear();
  if (enabled) HEARTH_TRY(Draft(id, live, emitter));
  batch_.assign(1, id);
  for (const DraftToken& draft : drafts_) batch_.push_back(draft.id);
  const std::size_t n_vocab = live.logits.size();
  rows_.resize(batch_.size() * n_vocab);
  if (drafter_->needs_hidden()) {
    hidden_rows_.resize(batch_.size() * live.hidden.size());
  }
  HEARTH_TRY(live.forward.Step(
      {.kv = &live.kv,
       .tokens = batch_,
       .want = LogitRows::kAll,
       .logits = rows_.data(),
       .hidden = drafter_->needs_hidden() ? hidden_rows_.data() : nullptr}));

  live.tokens.push_back(id);
  std::optional<std::int32_t> next;
  std::size_t i = 0;
  int n_accepted = 0;
  while (true) {
    const auto logits = std::span(rows_).subspan(i * n_vocab, n_vocab);
    const bool guessed = i < drafts_.size();
    const std::int32_t sampled =
        guessed ? Verify(logits, drafts_[i], emitter.sampler(), p_)
                : emitter.sampler().Sample(logits);
    const bool right = guessed && sampled == drafts_[i].id;
    n_accepted += right;
    next = emitter.Emit(sampled);
    if (!right || !next.has_value()) break;
    live.tokens.push_back(sampled);
    ++i;
  }
  const auto last = rows_.begin() + static_cast<std::ptrdiff_t>(i * n_vocab);
  live.logits.assign(last, last + static_cast<std::ptrdiff_t>(n_vocab));
  if (drafter_->needs_hidden()) {
    const std::size_t d = live.hidden.size();
    std::copy_n(hidden_rows_.begin() + static_cast<std::ptrdiff_t>(i * d), d,
                live.hidden.begin());
  }
  live.kv.Rewind(static_cast<int>(live.tokens.size()));

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
