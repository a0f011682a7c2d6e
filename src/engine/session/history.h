// What a session holds: tokens, their KV, and the logits that the newest of
// them gave. The three never disagree.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cache/kv_sequence.h"
#include "hearth/result.h"

namespace hearth {

class History {
 public:
  // `chain_root`: what the first block's id stands behind.
  explicit History(std::unique_ptr<KvSequence> kv,
                   const Digest& chain_root = {})
      : kv_(std::move(kv)), chain_root_(chain_root) {}

  std::span<const std::int32_t> tokens() const { return tokens_; }
  int n_tokens() const { return static_cast<int>(tokens_.size()); }
  KvSequence& kv() { return *kv_; }
  const KvSequence& kv() const { return *kv_; }

  // How many leading tokens are those of `tokens`.
  int CommonWith(std::span<const std::int32_t> tokens) const;
  // As KvSequence has them; the logits are not known afterwards.
  int RewindableTo(int n_tokens) const { return kv_->RewindableTo(n_tokens); }
  void Rewind(int n_tokens);
  // Another sequence, which holds `tokens`, takes the place of this one.
  void Replace(std::unique_ptr<KvSequence> kv,
               std::span<const std::int32_t> tokens);
  const Digest& chain_root() const { return chain_root_; }
  // Chain ids of the full blocks.
  std::span<const Digest> BlockIds();
  // Of all tokens: the chain id of the prefix that they are.
  Digest EndId();
  // Lets other sequences find the full blocks.
  void Publish() { kv_->Publish(BlockIds()); }
  // A second history with the same tokens; sealed blocks are shared.
  Result<History> Fork() const;

  // The last step's logits, [n_logits][vocab_size]: of the newest n_logits
  // tokens. 0: not known.
  int n_logits() const { return n_logits_; }
  std::span<const float> AllLogits() const {
    return n_logits_ == 0 ? std::span<const float>() : logits_;
  }
  std::span<const float> Logits(int row) const { return Row(logits_, row); }
  // What row `row` of the logits was computed from, its own token last.
  std::span<const std::int32_t> TokensBefore(int row) const {
    return tokens().first(
        static_cast<std::size_t>(n_tokens() - n_logits_ + row + 1));
  }
  // Of the newest token; empty: not known.
  std::span<const float> Logits() const {
    return n_logits_ == 0 ? std::span<const float>() : Logits(n_logits_ - 1);
  }
  // What row `row` of the logits was computed from, [d_model]; empty unless the
  // step runner keeps it.
  std::span<const float> Hidden(int row) const { return Row(hidden_, row); }
  void ForgetLogits() { n_logits_ = 0; }
  // Of the tokens that n_logits() rows are of, keeps the first `n`, and the
  // last of these rows: as if the step had ended there. REQUIRES: n >= 1, and
  // the sequence can be rewound there.
  void KeepRows(int n);

  // Calls f(tokens() and `next` behind them).
  template <typename F>
  auto With(std::int32_t next, const F& f) {
    tokens_.push_back(next);
    auto result = f(std::span<const std::int32_t>(tokens_));
    tokens_.pop_back();
    return result;
  }

 private:
  friend class StepRunner;

  // Of what tokens_ do not hold any more, forgets the ids.
  void DropIds(int n_tokens);
  std::span<const float> Row(const std::vector<float>& rows, int row) const {
    if (rows.empty()) return {};
    const std::size_t n = rows.size() / static_cast<std::size_t>(n_logits_);
    return std::span(rows).subspan(static_cast<std::size_t>(row) * n, n);
  }

  std::unique_ptr<KvSequence> kv_;
  Digest chain_root_;
  std::vector<std::int32_t> tokens_;
  std::vector<Digest> ids_;  // of the first full blocks
  int n_logits_ = 0;
  // Only meaningful with n_logits_ > 0. A step writes the second pair and
  // swaps, so that one that fails leaves the first.
  std::vector<float> logits_, hidden_;
  std::vector<float> next_logits_, next_hidden_;
};

}  // namespace hearth
