// Holds an answer to a family's form, the request's tools and its body's form,
// and ends its reasoning in time.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "grammar/automaton/token_trie.h"
#include "hearth/constraint.h"
#include "output/description/program.h"
#include "output/mask/answer_rules.h"
#include "output/tools.h"
#include "text/tokenizer.h"

namespace hearth::output {

// The vocabulary with the program's tokens under their codes.
std::shared_ptr<const grammar::TokenTrie> TrieFor(const Program& program,
                                                  const Tokenizer& tokenizer);

struct ConstrainedAnswer {
  std::shared_ptr<const Program> program;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const grammar::TokenTrie> trie;  // TrieFor the two
  bool in_thought = false;
  // Then its end marker; 0: no thought begins; -1: no limit.
  int reasoning_tokens_max = -1;
};

// Errors: AnswerMachine::Compile. Compiled once; the constraints share it.
Result<MakeConstraint> ConstrainAnswer(const ConstrainedAnswer& answer,
                                       const ToolSet& tools, AnswerRules rules,
                                       std::vector<std::string>& notes);

}  // namespace hearth::output
