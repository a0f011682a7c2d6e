// Regular expressions of JSON Schema's `pattern` (ECMA-262), as far as they are
// regular: classes, groups, alternatives, repetitions, ^ and $ at the ends.
//
// Errors  kUnsupported, naming it: look-around, back references, \b, anchors
//         inside, \p{...}. kInvalidArgument: not a regular expression.
#pragma once

#include <string_view>

#include "grammar/automaton/automaton.h"
#include "hearth/result.h"

namespace hearth::grammar {

// What `pattern` matches, as the inside of a JSON string. Without ^ or $ any
// text may stand before or behind, as the keyword means it.
Result<Fragment> PatternInJson(Automaton& automaton, std::string_view pattern);

}  // namespace hearth::grammar
