// Reads a family's description, the small language of src/output/families.
//
//   family hermes
//   thought "<think>" "</think>"
//   answer = ws <<"<think>">> thought | body      # an answer from its start
//   thought = ...                                 # and from inside reasoning
//   calls = ...  call = ...  # the part with calls, and one of them; a rule may
//                            # also be named calls_x or call_x
//
// A rule is alternatives (|) of sequences of parts, with ( ) ? * +; a line that
// begins with a blank goes on with the rule before. Other rules are put in
// where they are named; none may hold itself. Parts:
//
//   "literal"   <<"special token">>   ws (white space may stand here)
//   text as reasoning   text as content   text (dropped)
//   name   key   value   value as string   value as json   lines
//   json(arguments)   json({"name": name, "arguments": arguments, "id": id})
//   json([{"name": name, "arguments": arguments}])   json([{name: arguments}])
//   digits   id   end (the call is over with the part before)
//
// Errors  kInvalidArgument with the line, and for a description in which it is
//         not clear at once what comes: two open parts, or two fixed ones of
//         which one begins the other.
#pragma once

#include <string_view>

#include "hearth/result.h"
#include "output/description/program.h"

namespace hearth::output {

Result<Program> ParseDescription(std::string_view text);

}  // namespace hearth::output
