// What an answer is held to.
#pragma once

#include <string>

#include "hearth/dialogue.h"

namespace hearth::output {

struct AnswerRules {
  bool calls = true;            // may there be calls
  bool calls_required = false;  // must there be one
  bool parallel = true;         // more than one
  bool strict = false;          // all tools' arguments; else those that say so
  bool thoughts = true;         // may one begin
  BodyForm body = BodyForm::kText;
  std::string body_grammar = {};
};

}  // namespace hearth::output
