#include "grammar/token_constraint.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace hearth {
namespace {

class GrammarConstraint final : public TokenConstraint {
 public:
  GrammarConstraint(std::shared_ptr<grammar::Grammar> grammar,
                    std::shared_ptr<const grammar::TokenTrie> trie,
                    std::shared_ptr<const Tokenizer> tokenizer,
                    std::vector<std::int32_t> end_ids)
      : matcher_(std::move(grammar)),
        trie_(std::move(trie)),
        tokenizer_(std::move(tokenizer)),
        end_ids_(std::move(end_ids)) {}

  void Mask(std::span<std::uint64_t> bits) override {
    std::fill(bits.begin(), bits.end(), 0);
    if (ended_after_ >= 0) return;
    matcher_.AddMask(trie_, bits);
    if (!matcher_.CanEnd()) return;
    for (const std::int32_t id : end_ids_) {
      const auto at = static_cast<std::size_t>(id);
      if (at / 64 < bits.size()) bits[at / 64] |= std::uint64_t{1} << (at % 64);
    }
  }

  void Accept(std::int32_t id) override {
    if (std::find(end_ids_.begin(), end_ids_.end(), id) != end_ids_.end()) {
      ended_after_ = matcher_.Mark();
      return;
    }
    HEARTH_CHECK(matcher_.Accept(tokenizer_->TokenBytes(id)));
  }

  int Mark() const override {
    return ended_after_ >= 0 ? ended_after_ + 1 : matcher_.Mark();
  }

  void Return(int mark) override {
    if (ended_after_ >= 0 && mark <= ended_after_) ended_after_ = -1;
    matcher_.Return(std::min(mark, matcher_.Mark()));
  }

 private:
  grammar::Matcher matcher_;
  std::shared_ptr<const grammar::TokenTrie> trie_;
  std::shared_ptr<const Tokenizer> tokenizer_;
  std::vector<std::int32_t> end_ids_;
  int ended_after_ = -1;  // tokens before the end marker; -1: none has come
};

}  // namespace

std::unique_ptr<TokenConstraint> MakeGrammarConstraint(
    std::shared_ptr<grammar::Grammar> grammar,
    std::shared_ptr<const grammar::TokenTrie> trie,
    std::shared_ptr<const Tokenizer> tokenizer,
    std::vector<std::int32_t> end_ids) {
  return std::make_unique<GrammarConstraint>(
      std::move(grammar), std::move(trie), std::move(tokenizer),
      std::move(end_ids));
}

}  // namespace hearth
