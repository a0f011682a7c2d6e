// Turns a JSON Schema into rules of a machine.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/json.h"
#include "grammar/automaton/automaton.h"
#include "grammar/schema/decimal_range.h"
#include "grammar/schema/flatten.h"
#include "grammar/schema/json_rules.h"
#include "grammar/schema/json_schema.h"

namespace hearth::grammar {

// What an object's machine needs to know when its states are made.
struct ObjectShape {
  struct Member {
    std::string name;
    bool required = false;
    StateId value = -1;  // the rule of its value
  };
  std::vector<Member> members;
  StateId other_name = -1;    // the rule of a name that is not listed; -1: none
  StateId other_value = -1;   // and of its value
  int n_min = 0, n_max = -1;  // members; n_max -1: no limit
};

class SchemaCompiler {
 public:
  // `root` outlives the machine's making; so does the compiler.
  SchemaCompiler(Automaton& automaton, const Json& root,
                 const SchemaOptions& options)
      : automaton_(automaton),
        options_(options),
        rules_(automaton),
        flattener_(root, options.open_objects) {}

  // The rule of a schema's values. A schema is compiled once however often it
  // is met, so that recursion ends.
  Result<StateId> Compile(const Json& schema, const std::string& place);

  std::vector<std::string> TakeNotes() { return std::move(notes_); }
  JsonRules& rules() { return rules_; }

 private:
  Result<Fragment> CompileValue(const Json& schema, const std::string& place);
  Result<Fragment> CompilePlain(const Json& schema, const std::string& place);
  Result<Fragment> CompileType(const std::string& type, const Json& schema,
                               const std::string& place);
  Result<Fragment> CompileConstants(const Json& schema,
                                    const std::string& place);
  Result<Fragment> CompileString(const Json& schema, const std::string& place);
  Result<Fragment> CompileNumber(const Json& schema, bool integer,
                                 const std::string& place);
  Result<Fragment> CompileArray(const Json& schema, const std::string& place);
  Result<Fragment> CompileObject(const Json& schema, const std::string& place);
  Result<void> AddMembers(const Json& schema, const std::string& place,
                          ObjectShape& shape);
  Result<void> AddOthers(const Json& schema, const std::string& place,
                         ObjectShape& shape);
  Result<void> CheckKeywords(const Json& schema, const std::string& place);
  Result<int> Count(const Json& schema, const char* key, int fallback,
                    const std::string& place);

  Automaton& automaton_;
  SchemaOptions options_;
  JsonRules rules_;
  Flattener flattener_;
  std::map<std::string, StateId> known_;  // by the schema's text
  std::vector<std::string> notes_;
};

// An object's text. The machine keeps a copy of `shape`, since it makes a state
// for each set of members seen only when a text comes there.
Fragment ObjectOf(Automaton& automaton, JsonRules& rules, ObjectShape shape);

// A JSON string that is none of `names`.
StateId NameOtherThan(Automaton& automaton, JsonRules& rules,
                      const std::vector<std::string>& names);

// The regular expression of a `format`, or nullptr for one that is only a note.
const char* PatternOfFormat(const std::string& format);

}  // namespace hearth::grammar
