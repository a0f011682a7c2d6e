// Answers that follow a grammar: for GenerateOptions::constraint
// (docs/grammar.md).
//
//   HEARTH_ASSIGN(auto form, ConstraintFromJsonSchema(*engine, schema_text));
//   session->Generate({.constraint = form.make}, on_token);
//
// An answer that ends by itself is a text of the grammar; one that is cut by
// n_tokens_max, the context or a stop text is the beginning of one.
//
// Threads  any. A constraint keeps what it needs of the engine; making one
// again
//          costs nothing, and answers share what was found for others.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "hearth/constraint.h"
#include "hearth/engine.h"
#include "hearth/result.h"

namespace hearth {

struct GrammarConstraint {
  MakeConstraint make;
  std::vector<std::string> notes = {};  // what of the text has no effect
};

// GBNF, llama.cpp's notation. kInvalidArgument with line and column;
// kUnsupported for token references.
Result<GrammarConstraint> ConstraintFromGbnf(Engine& engine,
                                             std::string_view text);
// A JSON Schema's text (draft 2020-12). kCorrupt when it is no JSON,
// kInvalidArgument when it is no schema or accepts nothing, kUnsupported with
// the keyword and its place.
Result<GrammarConstraint> ConstraintFromJsonSchema(Engine& engine,
                                                   std::string_view text);
// Any JSON object.
Result<GrammarConstraint> ConstraintOfJsonObject(Engine& engine);

}  // namespace hearth
