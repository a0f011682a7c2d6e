#include "output/mask/answer_constraint.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
#include "grammar/grammar.h"
#include "output/mask/answer_machine.h"

namespace hearth::output {
namespace {

void SetBit(std::span<std::uint64_t> bits, std::int32_t id) {
  const auto at = static_cast<std::size_t>(id);
  if (at / 64 < bits.size()) bits[at / 64] |= std::uint64_t{1} << (at % 64);
}

// What all constraints of one answer share.
struct Shared {
  ConstrainedAnswer answer;
  std::shared_ptr<grammar::Grammar> grammar;
  std::vector<std::int32_t> thought_end_ids;  // of its marker
};

// Where in its reasoning an answer is.
struct Thought {
  bool inside = false;
  int n_tokens = 0;    // of reasoning so far
  int n_forced = 0;    // of the end marker, once the limit is reached
  std::string recent;  // the newest bytes, as long as a marker
};

class AnswerConstraint final : public TokenConstraint {
 public:
  explicit AnswerConstraint(std::shared_ptr<const Shared> shared)
      : shared_(std::move(shared)), matcher_(shared_->grammar) {
    thoughts_.emplace_back();
    thoughts_.back().inside = shared_->answer.in_thought;
  }

  void Mask(std::span<std::uint64_t> bits) override {
    std::fill(bits.begin(), bits.end(), 0);
    if (ended_after_ >= 0) return;
    if (Forces() && Takes(NextForced())) return SetBit(bits, NextForced());
    matcher_.AddMask(shared_->answer.trie, bits);
    if (!matcher_.CanEnd()) return;
    for (const std::int32_t id : shared_->answer.tokenizer->end_ids()) {
      SetBit(bits, id);
    }
  }

  void Accept(std::int32_t id) override {
    const std::string bytes = BytesOf(id);
    const bool ends = shared_->answer.tokenizer->IsEnd(id);
    const bool forced = Forces() && id == NextForced();
    // An end marker may belong to the form too: "<|call|>".
    if (!(ends && !IsMarker(id)) && matcher_.Accept(bytes)) {
      return Follow(bytes, forced);
    }
    HEARTH_CHECK(ends);
    ended_after_ = matcher_.Mark();
  }

  int Mark() const override {
    return ended_after_ >= 0 ? ended_after_ + 1 : matcher_.Mark();
  }

  void Return(int mark) override {
    if (ended_after_ >= 0 && mark <= ended_after_) ended_after_ = -1;
    matcher_.Return(std::min(mark, matcher_.Mark()));
    thoughts_.resize(static_cast<std::size_t>(matcher_.Mark()) + 1);
  }

 private:
  bool Forces() const {
    const int max = shared_->answer.reasoning_tokens_max;
    const Thought& now = thoughts_.back();
    return max >= 0 && now.inside && now.n_tokens >= max &&
           now.n_forced < static_cast<int>(shared_->thought_end_ids.size());
  }

  std::int32_t NextForced() const {
    const auto n = static_cast<std::size_t>(thoughts_.back().n_forced);
    return shared_->thought_end_ids[n];
  }

  bool Takes(std::int32_t id) {
    const int mark = matcher_.Mark();
    if (!matcher_.Accept(BytesOf(id))) return false;
    matcher_.Return(mark);
    return true;
  }

  bool IsMarker(std::int32_t id) const {
    const auto& markers = shared_->answer.program->markers;
    return std::any_of(markers.begin(), markers.end(),
                       [&](const TokenMarker& one) { return one.id == id; });
  }

  std::string BytesOf(std::int32_t id) const {
    const auto& markers = shared_->answer.program->markers;
    for (std::size_t i = 0; i < markers.size(); ++i) {
      if (markers[i].id == id) return Program::CodeOf(i);
    }
    return shared_->answer.tokenizer->TokenBytes(id);
  }

  void Follow(const std::string& bytes, bool forced) {
    const Program& program = *shared_->answer.program;
    Thought next = thoughts_.back();
    next.recent += program.Spelled(bytes);
    const auto came = [&](const std::string& marker) {
      return !marker.empty() && next.recent.find(marker) != std::string::npos;
    };
    const std::string& marker =
        next.inside ? program.thought_end : program.thought_begin;
    if (came(marker)) {
      const bool inside = !next.inside;
      next = Thought();
      next.inside = inside;
    } else {
      next.recent.erase(
          0, next.recent.size() - std::min(next.recent.size(), marker.size()));
      if (next.inside) ++next.n_tokens;
      if (forced) ++next.n_forced;
    }
    thoughts_.push_back(std::move(next));
  }

  std::shared_ptr<const Shared> shared_;
  grammar::Matcher matcher_;
  std::vector<Thought> thoughts_;  // behind each token
  int ended_after_ = -1;  // tokens before the end marker; -1: none has come
};

}  // namespace

std::shared_ptr<const grammar::TokenTrie> TrieFor(const Program& program,
                                                  const Tokenizer& tokenizer) {
  std::vector<grammar::SpelledToken> spelled;
  for (std::size_t i = 0; i < program.markers.size(); ++i) {
    spelled.push_back({program.markers[i].id, Program::CodeOf(i)});
  }
  return std::make_shared<const grammar::TokenTrie>(tokenizer, spelled);
}

Result<MakeConstraint> ConstrainAnswer(const ConstrainedAnswer& answer,
                                       const ToolSet& tools, AnswerRules rules,
                                       std::vector<std::string>& notes) {
  auto shared = std::make_shared<Shared>();
  shared->answer = answer;
  if (answer.reasoning_tokens_max > (answer.in_thought ? -1 : 0)) {
    if (answer.program->thought_end.empty()) {
      return {Code::kUnsupported,
              "this model's reasoning has no end marker that is known, so it "
              "cannot be limited"};
    }
    HEARTH_ASSIGN(shared->thought_end_ids,
                  answer.tokenizer->Encode(
                      answer.program->thought_end,
                      {.add_special = false, .parse_special = true}));
  }
  rules.thoughts = rules.thoughts && answer.reasoning_tokens_max != 0;
  auto automaton = std::make_unique<grammar::Automaton>();
  const auto machine = std::make_shared<AnswerMachine>(
      *automaton, answer.program, std::move(rules));
  HEARTH_ASSIGN(const grammar::StateId start,
                machine->Compile(tools, answer.in_thought, notes));
  HEARTH_ASSIGN(shared->grammar,
                grammar::Grammar::Make(std::move(automaton), start));
  return MakeConstraint(
      [shared = std::shared_ptr<const Shared>(std::move(shared))] {
        return std::make_unique<AnswerConstraint>(shared);
      });
}

}  // namespace hearth::output
