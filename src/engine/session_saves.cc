// What a session hands to the prompt cache, and when.
#include <algorithm>
#include <chrono>
#include <string>
#include <utility>

#include "engine/session.h"

namespace hearth {
namespace {

constexpr std::size_t kPreviewTokens = 64;

// How much work a kill may cost. A prefill shorter than this saves nothing
// until its first token is out.
constexpr std::chrono::milliseconds kSaveInterval{500};

}  // namespace

void SessionImpl::ForgetLostSaves() {
  const std::uint64_t n_lost = parts_.prompt_cache->n_lost();
  if (n_lost != n_lost_) n_stored_ = 0;  // what exists is not written again
  n_lost_ = n_lost;
}

void SessionImpl::KeepUnsaved() {
  if (parts_.prompt_cache == nullptr) return;
  const int n_tokens = sequence_->n_tokens();
  const int releasable = std::max(n_stored_, n_tokens - kUnsavedTokensMax);
  sequence_->SetReleasable(releasable);
}

int SessionImpl::SavableTokens(int n_tokens) const {
  const int step = parts_.spec.block_tokens;
  const int first = n_stored_ / step;
  for (int begin = first * step; begin < n_tokens; begin += step) {
    if (!sequence_->HasImage(begin / step, std::min(step, n_tokens - begin))) {
      return begin;
    }
  }
  return n_tokens;
}

void SessionImpl::SaveSealed(bool now) {
  if (parts_.prompt_cache == nullptr) return;
  const auto time = std::chrono::steady_clock::now();
  if (!now && time - last_save_ < kSaveInterval) return;
  last_save_ = time;
  ForgetLostSaves();
  const int step = parts_.spec.block_tokens;
  const int n_full =
      SavableTokens(static_cast<int>(tokens_.size()) / step * step);
  if (n_full <= n_stored_) return;
  const auto full = std::span<const std::int32_t>(tokens_).first(
      static_cast<std::size_t>(n_full));
  if (parts_.prompt_cache->SaveBlocks(full, *sequence_, n_stored_)) {
    n_stored_ = n_full;
    lacks_manifest_ = true;
  }
}

void SessionImpl::Save(std::size_t n_tokens) {
  ForgetLostSaves();
  unsaved_prompt_.reset();
  // Less when a window is done with some of it: then the beginning is kept.
  const int n_savable = SavableTokens(static_cast<int>(n_tokens));
  if (n_savable < static_cast<int>(n_tokens) && n_savable <= n_stored_) return;
  n_tokens = static_cast<std::size_t>(n_savable);
  const auto tokens = std::span<const std::int32_t>(tokens_).first(n_tokens);
  std::string preview;
  if (parts_.options.cache_previews) {
    preview = parts_.tokenizer->Decode(
        tokens.first(std::min(n_tokens, kPreviewTokens)));
  }
  parts_.prompt_cache->Save(tokens, *sequence_, n_stored_, std::move(preview));
  n_stored_ = static_cast<int>(n_tokens);
  lacks_manifest_ = false;
}

void SessionImpl::SavePrompt() {
  if (unsaved_prompt_.has_value()) Save(*unsaved_prompt_);
}

void SessionImpl::Persist() {
  if (parts_.prompt_cache == nullptr || tokens_.empty()) return;
  if (lacks_manifest_ || n_stored_ < static_cast<int>(tokens_.size())) {
    Save(tokens_.size());
  }
  if (speculation_ != nullptr) speculation_->drafter().Persist();
}

}  // namespace hearth
