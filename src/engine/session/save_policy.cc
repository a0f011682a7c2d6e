#include "engine/session/save_policy.h"

#include <algorithm>
#include <string>
#include <utility>

#include "engine/kv_plan.h"

namespace hearth {
namespace {

constexpr std::size_t kPreviewTokens = 64;

// How much work a kill may cost. A prefill shorter than this saves nothing
// until its first token is out.
constexpr std::chrono::milliseconds kSaveInterval{500};
// States are larger: how often those of a growing prompt are kept.
constexpr std::chrono::seconds kStateInterval{10};

}  // namespace

void SavePolicy::NoteRewound(int n_tokens) {
  n_stored_ = std::min(n_stored_, n_tokens);
  states_.NoteRewound(n_tokens);
}

void SavePolicy::BeginPrompt(int n_tokens) {
  unsaved_prompt_.reset();
  last_save_ = last_state_ = now_();
  n_prompt_ = n_tokens;
  if (cache_ == nullptr) return;
  ForgetLostSaves();
  if (n_stored_ < n_tokens) unsaved_prompt_ = n_tokens;
}

SavePolicy SavePolicy::Fork() const {
  SavePolicy fork = *this;
  fork.unsaved_prompt_.reset();
  fork.lacks_manifest_ = false;
  fork.states_ = states_.Fork();
  return fork;
}

void SavePolicy::ForgetLostSaves() {
  const std::uint64_t n_lost = cache_->n_lost();
  if (n_lost != n_lost_) {
    n_stored_ = 0;  // what exists is not written again
    states_.Forget();
  }
  n_lost_ = n_lost;
}

void SavePolicy::AfterStep(History& history) {
  if (cache_ == nullptr) return;
  if (unsaved_prompt_.has_value() || saves_answers_) SaveSealed(history);
  KeepUnsaved(history);
}

bool SavePolicy::WantsState(const History& history) {
  const KvSequence& kv = history.kv();
  const int n = history.n_tokens();
  if (cache_ == nullptr ||
      (kv.spec().quantised() && n % kv.block_tokens() != 0)) {
    return false;
  }
  if (unsaved_prompt_.has_value() && n < *unsaved_prompt_) {
    if (now_() - last_state_ < kStateInterval) return false;
  } else if (!saves_answers_) {
    return false;
  }
  const auto kept = kv.KeptStates();
  const int last = kept.empty() ? 0 : kept.back()->n_tokens;
  if (n - std::max(last, states_.last()) < StateSaves::kGapTokens) return false;
  last_state_ = now_();
  return true;
}

void SavePolicy::KeepUnsaved(History& history) const {
  const int n_tokens = history.n_tokens();
  history.kv().SetReleasable(std::max(n_stored_, n_tokens - kUnsavedTokensMax));
}

int SavePolicy::SavableTokens(const KvSequence& kv, int n_tokens) const {
  const int step = kv.block_tokens();
  const int first = n_stored_ / step;
  for (int begin = first * step; begin < n_tokens; begin += step) {
    if (!kv.HasImage(begin / step, std::min(step, n_tokens - begin))) {
      return begin;
    }
  }
  return n_tokens;
}

void SavePolicy::SaveSealed(const History& history) {
  const auto time = now_();
  if (time - last_save_ < kSaveInterval) return;
  last_save_ = time;
  ForgetLostSaves();
  const int step = history.kv().block_tokens();
  const int n_full =
      SavableTokens(history.kv(), history.n_tokens() / step * step);
  StatesToSave states = states_.Choose(history.kv().KeptStates(), n_full,
                                       n_prompt_, StateSaves::When::kGrowing);
  if (n_full <= n_stored_ && states.states.empty()) return;
  const auto full = history.tokens().first(static_cast<std::size_t>(n_full));
  if (cache_->SaveBlocks(key_space_, full, history.kv(), n_stored_, states)) {
    n_stored_ = std::max(n_stored_, n_full);
    states_.NoteSaved(states);
    lacks_manifest_ = true;
  }
}

bool SavePolicy::Save(const History& history, int n_tokens, bool may_wait,
                      StateSaves::When when) {
  ForgetLostSaves();
  // Less when a window is done with some of it: then the beginning is kept.
  const int n_savable = SavableTokens(history.kv(), n_tokens);
  if (n_savable < n_tokens && n_savable <= n_stored_) {
    unsaved_prompt_.reset();
    return true;
  }
  const auto tokens =
      history.tokens().first(static_cast<std::size_t>(n_savable));
  std::string preview;
  if (options_->cache_previews) {
    preview = tokenizer_->Decode(
        tokens.first(std::min(tokens.size(), kPreviewTokens)));
  }
  const StatesToSave states =
      states_.Choose(history.kv().KeptStates(), n_savable, n_prompt_, when);
  if (!cache_->Save(key_space_, tokens, history.kv(), n_stored_, states,
                    std::move(preview), may_wait)) {
    return false;
  }
  states_.NoteSaved(states);
  unsaved_prompt_.reset();
  n_stored_ = n_savable;
  lacks_manifest_ = false;
  return true;
}

void SavePolicy::SavePrompt(const History& history) {
  if (unsaved_prompt_.has_value()) {
    (void)Save(
        history, *unsaved_prompt_, /*may_wait=*/!saves_answers_,
        saves_answers_ ? StateSaves::When::kPrompt : StateSaves::When::kAnswer);
  }
}

bool SavePolicy::SaveAll(const History& history, bool may_wait, bool rests) {
  if (cache_ == nullptr || history.n_tokens() == 0) return true;
  ForgetLostSaves();
  const int n = history.n_tokens();
  const auto when =
      rests ? StateSaves::When::kRest : StateSaves::When::kGrowing;
  if (!lacks_manifest_ && n_stored_ >= n &&
      states_.Choose(history.kv().KeptStates(), n, n_prompt_, when)
          .states.empty()) {
    return true;
  }
  return Save(history, n, may_wait, when);
}

bool SavePolicy::HasStored(const History& history) const {
  return cache_ != nullptr && cache_->n_lost() == n_lost_ &&
         n_stored_ >= history.n_tokens() &&
         (history.kv().spec().states.empty() ||
          states_.has(history.n_tokens()));
}

}  // namespace hearth
