#include "grammar/grammar.h"

#include <string>
#include <utility>

namespace hearth::grammar {

Result<std::shared_ptr<Grammar>> Grammar::Make(
    std::unique_ptr<Automaton> automaton, StateId start) {
  if (automaton->full()) {
    return {Code::kResourceFull,
            "the grammar needs more than " +
                std::to_string(Automaton::kStatesMax) +
                " states; repeat less, or name what repeats as a rule"};
  }
  return std::shared_ptr<Grammar>(new Grammar(std::move(automaton), start));
}

Matcher::Matcher(std::shared_ptr<Grammar> grammar)
    : grammar_(std::move(grammar)), history_{{{grammar_->start_, 0}}} {}

NodeId Matcher::Node() {
  Configurations& all = grammar_->configurations_;
  all.Trim();
  if (!node_known_ || generation_ != all.generation()) {
    node_ = all.Intern(history_.back());
    generation_ = all.generation();
    node_known_ = true;
  }
  return node_;
}

bool Matcher::Accept(std::string_view bytes) {
  const std::scoped_lock lock(grammar_->mutex_);
  Configurations& all = grammar_->configurations_;
  NodeId node = Node();
  for (const char c : bytes) {
    if (node == kDead) return false;
    node = all.Step(node, static_cast<std::uint8_t>(c));
  }
  if (node == kDead) return false;
  history_.push_back(all.Kernel(node));
  node_ = node;
  return true;
}

bool Matcher::CanEnd() {
  const std::scoped_lock lock(grammar_->mutex_);
  const NodeId node = Node();
  return node != kDead && grammar_->configurations_.Ends(node);
}

bool Matcher::MustEnd() {
  const std::scoped_lock lock(grammar_->mutex_);
  const NodeId node = Node();
  return node != kDead && !grammar_->configurations_.GoesOn(node);
}

void Matcher::AddMask(const std::shared_ptr<const TokenTrie>& trie,
                      std::span<std::uint64_t> bits) {
  const std::scoped_lock lock(grammar_->mutex_);
  const NodeId node = Node();
  if (node == kDead) return;
  std::unique_ptr<TokenMasks>& masks = grammar_->masks_[trie];
  if (masks == nullptr) {
    masks = std::make_unique<TokenMasks>(*grammar_->automaton_,
                                         grammar_->configurations_, *trie);
  }
  masks->AddMask(node, bits);
}

void Matcher::Return(int mark) {
  history_.resize(static_cast<std::size_t>(mark) + 1);
  node_known_ = false;
}

}  // namespace hearth::grammar
