// What tests of grammars ask.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "grammar/grammar.h"

namespace hearth::grammar {

inline bool Matches(const std::shared_ptr<Grammar>& grammar,
                    std::string_view text) {
  Matcher matcher(grammar);
  return matcher.Accept(text) && matcher.CanEnd();
}

// The grammar of one piece of a machine.
template <class Build>
std::shared_ptr<Grammar> GrammarOf(Build build) {
  auto automaton = std::make_unique<Automaton>();
  const StateId start = automaton->Close(build(*automaton));
  return Grammar::Make(std::move(automaton), start).value();
}

}  // namespace hearth::grammar
