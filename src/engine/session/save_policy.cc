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

}  // namespace

void SavePolicy::NoteRewound(int n_tokens) {
  n_stored_ = std::min(n_stored_, n_tokens);
}

void SavePolicy::BeginPrompt(int n_tokens) {
  unsaved_prompt_.reset();
  last_save_ = now_();
  if (cache_ == nullptr) return;
  ForgetLostSaves();
  if (n_stored_ < n_tokens) unsaved_prompt_ = n_tokens;
}

SavePolicy SavePolicy::Fork() const {
  SavePolicy fork = *this;
  fork.unsaved_prompt_.reset();
  fork.lacks_manifest_ = false;
  return fork;
}

void SavePolicy::ForgetLostSaves() {
  const std::uint64_t n_lost = cache_->n_lost();
  if (n_lost != n_lost_) n_stored_ = 0;  // what exists is not written again
  n_lost_ = n_lost;
}

void SavePolicy::AfterStep(History& history) {
  if (cache_ == nullptr) return;
  if (unsaved_prompt_.has_value() || saves_answers_) SaveSealed(history);
  KeepUnsaved(history);
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
  if (n_full <= n_stored_) return;
  const auto full = history.tokens().first(static_cast<std::size_t>(n_full));
  if (cache_->SaveBlocks(key_space_, full, history.kv(), n_stored_)) {
    n_stored_ = n_full;
    lacks_manifest_ = true;
  }
}

bool SavePolicy::Save(const History& history, int n_tokens, bool may_wait) {
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
  if (!cache_->Save(key_space_, tokens, history.kv(), n_stored_,
                    std::move(preview), may_wait)) {
    return false;
  }
  unsaved_prompt_.reset();
  n_stored_ = n_savable;
  lacks_manifest_ = false;
  return true;
}

void SavePolicy::SavePrompt(const History& history) {
  if (unsaved_prompt_.has_value()) {
    (void)Save(history, *unsaved_prompt_, /*may_wait=*/!saves_answers_);
  }
}

bool SavePolicy::SaveAll(const History& history, bool may_wait) {
  if (cache_ == nullptr || history.n_tokens() == 0) return true;
  ForgetLostSaves();
  if (!lacks_manifest_ && n_stored_ >= history.n_tokens()) return true;
  return Save(history, history.n_tokens(), may_wait);
}

bool SavePolicy::HasStored(const History& history) const {
  return cache_ != nullptr && cache_->n_lost() == n_lost_ &&
         n_stored_ >= history.n_tokens();
}

}  // namespace hearth
