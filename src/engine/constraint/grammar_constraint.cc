// Grammars of the room below, for an engine's vocabulary.
#include <memory>
#include <utility>

#include "base/json.h"
#include "engine/engine_core.h"
#include "grammar/schema/json_schema.h"
#include "grammar/text/gbnf.h"
#include "grammar/token_constraint.h"
#include "hearth/grammar.h"

namespace hearth {
namespace {

GrammarConstraint Over(Engine& engine,
                       std::shared_ptr<grammar::Grammar> grammar,
                       std::vector<std::string> notes) {
  const EngineCore& core = EngineAccess::Core(engine);
  const auto trie = EngineAccess::Core(engine).token_trie.Of(*core.tokenizer);
  const auto ends = core.tokenizer->end_ids();
  return {[grammar = std::move(grammar), trie, tokenizer = core.tokenizer,
           end_ids = std::vector<std::int32_t>(ends.begin(), ends.end())] {
            return MakeGrammarConstraint(grammar, trie, tokenizer, end_ids);
          },
          std::move(notes)};
}

}  // namespace

Result<GrammarConstraint> ConstraintFromGbnf(Engine& engine,
                                             std::string_view text) {
  HEARTH_ASSIGN(auto grammar, grammar::GrammarFromGbnf(text));
  return Over(engine, std::move(grammar), {});
}

Result<GrammarConstraint> ConstraintFromJsonSchema(Engine& engine,
                                                   std::string_view text) {
  HEARTH_ASSIGN(const Json schema, ParseJson(text, "the JSON Schema"));
  HEARTH_ASSIGN(auto made, grammar::GrammarFromJsonSchema(schema));
  return Over(engine, std::move(made.grammar), std::move(made.notes));
}

Result<GrammarConstraint> ConstraintOfJsonObject(Engine& engine) {
  HEARTH_ASSIGN(auto grammar, grammar::GrammarOfJsonObject());
  return Over(engine, std::move(grammar), {});
}

}  // namespace hearth
