// Finds calls that lead back to where they began without a byte taken: a
// matcher would follow them for ever.
#pragma once

#include <span>

#include "grammar/automaton/automaton.h"

namespace hearth::grammar {

// The index of a rule that may call itself first, or -1. `rules`: where each
// starts. REQUIRES: no late states.
int LeftRecursiveRule(Automaton& automaton, std::span<const StateId> rules);

}  // namespace hearth::grammar
