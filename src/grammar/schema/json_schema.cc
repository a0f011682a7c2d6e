#include "grammar/schema/json_schema.h"

#include <utility>

#include "grammar/schema/compiler.h"

namespace hearth::grammar {

Result<SchemaGrammar> GrammarFromJsonSchema(const Json& schema,
                                            const SchemaOptions& options) {
  auto automaton = std::make_unique<Automaton>();
  SchemaCompiler compiler(*automaton, schema, options);
  HEARTH_ASSIGN(const StateId start, compiler.Compile(schema, "#"));
  SchemaGrammar out;
  out.notes = compiler.TakeNotes();
  HEARTH_ASSIGN(out.grammar, Grammar::Make(std::move(automaton), start));
  return out;
}

Result<std::shared_ptr<Grammar>> GrammarOfJsonObject() {
  auto automaton = std::make_unique<Automaton>();
  const StateId start = JsonRules(*automaton).object();
  return Grammar::Make(std::move(automaton), start);
}

}  // namespace hearth::grammar
