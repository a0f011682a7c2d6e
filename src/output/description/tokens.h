// The words of a description.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hearth/result.h"

namespace hearth::output {

struct Word {
  enum class Kind : std::uint8_t {
    kName,     // letters and underscores
    kLiteral,  // text: what stands in the quotes
    kSign,     // text: one of = | ( ) ? * + << >> { } [ ] : ,
    kLine      // a line that does not begin with a blank starts behind it
  };
  Kind kind;
  std::string text;
  int line;
};

// kInvalidArgument, with the line.
Result<std::vector<Word>> WordsOf(std::string_view text);
Error WrongDescription(int line, const std::string& problem);

}  // namespace hearth::output
