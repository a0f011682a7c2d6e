#include "engine/session/history.h"

#include <algorithm>
#include <utility>

#include "cache/block_chain.h"

namespace hearth {

int History::CommonWith(std::span<const std::int32_t> tokens) const {
  return static_cast<int>(std::mismatch(tokens_.begin(), tokens_.end(),
                                        tokens.begin(), tokens.end())
                              .first -
                          tokens_.begin());
}

void History::Rewind(int n_tokens) {
  kv_->Rewind(n_tokens);
  tokens_.resize(static_cast<std::size_t>(n_tokens));
  DropIds(n_tokens);
  ForgetLogits();
}

void History::Replace(std::unique_ptr<KvSequence> kv,
                      std::span<const std::int32_t> tokens) {
  DropIds(CommonWith(tokens));
  kv_ = std::move(kv);
  tokens_.assign(tokens.begin(), tokens.end());
  ForgetLogits();
}

void History::KeepRows(int n) {
  const auto keep = [&](std::vector<float>& rows) {
    if (rows.empty()) return;
    const std::span<const float> last = Row(rows, n - 1);
    std::copy(last.begin(), last.end(), rows.begin());
    rows.resize(last.size());
  };
  keep(logits_);
  keep(hidden_);
  tokens_.resize(tokens_.size() - static_cast<std::size_t>(n_logits_ - n));
  n_logits_ = 1;
  kv_->Rewind(n_tokens());
  DropIds(n_tokens());
}

void History::DropIds(int n_tokens) {
  const auto n_full = static_cast<std::size_t>(n_tokens / kv_->block_tokens());
  ids_.resize(std::min(ids_.size(), n_full));
}

std::span<const Digest> History::BlockIds() {
  AddFullBlockIds(chain_root_, tokens_,
                  static_cast<std::size_t>(kv_->block_tokens()), ids_);
  return ids_;
}

Digest History::EndId() {
  const std::span<const Digest> ids = BlockIds();
  const Digest& parent = ids.empty() ? chain_root_ : ids.back();
  const auto n_full =
      ids.size() * static_cast<std::size_t>(kv_->block_tokens());
  const auto rest = tokens().subspan(n_full);
  return rest.empty() ? parent : ChildId(parent, rest);
}

Result<History> History::Fork() const {
  HEARTH_ASSIGN(auto kv, kv_->Fork());
  History fork(std::move(kv), chain_root_);
  fork.tokens_ = tokens_;
  fork.ids_ = ids_;
  fork.n_logits_ = n_logits_;
  if (n_logits_ > 0) {
    fork.logits_ = logits_;
    fork.hidden_ = hidden_;
  }
  return fork;
}

}  // namespace hearth
