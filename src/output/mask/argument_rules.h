// The parts of a grammar that a request's tools give: arguments as JSON, and
// one by one for families that write them as tags.
#pragma once

#include <string>
#include <vector>

#include "grammar/automaton/automaton.h"
#include "hearth/result.h"
#include "output/tools.h"

namespace hearth::output {

struct ArgumentRule {
  std::string name;
  bool required = false;
  TagForm form = TagForm::kEither;
  std::vector<std::string> constants;  // of an enum of strings
  grammar::StateId value = -1;         // kJson: the rule of its JSON
};

struct ToolRules {
  std::string name;
  grammar::StateId arguments = -1;    // the rule of the whole object
  std::vector<ArgumentRule> as_tags;  // filled for families with tags
};

// kUnsupported, naming tool and keyword, where `strict` or the tool asks that
// its schema is held to; elsewhere that part is any JSON, and a note. `tags`:
// as_tags is wanted.
Result<ToolRules> CompileTool(grammar::Automaton& automaton, const Tool& tool,
                              bool tags, bool strict,
                              std::vector<std::string>& notes);

}  // namespace hearth::output
