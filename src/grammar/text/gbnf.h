// GBNF, the grammar notation of llama.cpp: one rule a line, `root` first asked.
//
//   root  ::= "yes" | "no" ws list
//   list  ::= "[" item ("," item)* "]"      # comments
//   item  ::= [0-9]+ | [^a-z\n]{2,5} | .
//
// Errors  kInvalidArgument with line and column; a rule that is not defined; a
//         rule that calls itself before it takes anything (write it as a
//         repetition); kUnsupported: token references <[...]>.
#pragma once

#include <memory>
#include <string_view>

#include "grammar/grammar.h"

namespace hearth::grammar {

Result<std::shared_ptr<Grammar>> GrammarFromGbnf(std::string_view text);
// The same as a rule of a machine that has no late states yet.
Result<StateId> CompileGbnf(std::string_view text, Automaton& automaton);

}  // namespace hearth::grammar
