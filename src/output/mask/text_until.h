// Any text up to the first of several byte patterns, as states of a machine:
// Aho and Corasick's automaton, so that a pattern is never read as text.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "grammar/automaton/automaton.h"

namespace hearth::output {

// Adds its edges to `start`; behind each pattern stands its state. `ends`: the
// text may end anywhere. Token codes (kTokenByte and a number) count as one.
void AddTextUntil(
    grammar::Automaton& automaton, grammar::StateId start,
    const std::vector<std::pair<std::string, grammar::StateId>>& patterns,
    bool ends);

}  // namespace hearth::output
