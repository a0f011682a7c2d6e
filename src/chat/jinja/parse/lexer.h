// Splits a template into text and tokens.
//
// Whitespace follows the settings that chat templates are written for:
// trim_blocks (the newline behind a block or comment goes away) and
// lstrip_blocks (blanks before a block or comment that starts its line go
// away), with the `-` and `+` markers; one newline at the end of the template
// is dropped.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chat/jinja/limits.h"
#include "hearth/result.h"

namespace hearth::jinja {

struct Token {
  enum class Type {
    kText,           // printed as it is
    kBlockBegin,     // {%
    kBlockEnd,       // %}
    kVariableBegin,  // {{
    kVariableEnd,    // }}
    kName,
    kString,
    kInteger,
    kFloat,
    kOperator,  // text is the operator
    kEnd,
  };
  Type type;
  int line;
  std::string text;
  std::int64_t int_value = 0;
  double float_value = 0;
};

// The last token is kEnd. A syntax error is kCorrupt and starts with
// "NAME:LINE: ".
Result<std::vector<Token>> Tokenize(const std::string& source,
                                    const std::string& name,
                                    const ChatTemplateLimits& limits);

}  // namespace hearth::jinja
