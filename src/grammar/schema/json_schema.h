// JSON Schema (draft 2020-12, as far as listed) as a grammar: every text of it
// is valid JSON that the schema accepts.
//
// Supported  type, enum, const, properties in any order, required,
//            additionalProperties, propertyNames (without properties),
//            minProperties and maxProperties (when all names are listed),
//            items, prefixItems, minItems, maxItems, anyOf, oneOf (whose
//            branches provably exclude each other), allOf, local $ref with
//            recursion, minLength, maxLength, pattern, format, minimum, maximum
//            and their exclusive forms. Annotations (title, description,
//            default, ...) have no effect; a key that is no keyword has none
//            and is noted.
// Narrower   than the schema where a model gains by it: an object that lists
//            properties has no others unless additionalProperties says so;
//            without "type" the other keywords decide the type; integers have
//            no fraction; numbers and blanks are bounded (json_rules.h).
// Errors     kUnsupported, naming the keyword and its place; kInvalidArgument
//            for what is no schema, or accepts nothing.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "grammar/grammar.h"

namespace hearth::grammar {

struct SchemaOptions {
  // A part that is not supported becomes any JSON, with a note, instead of an
  // error.
  bool lenient = false;
  // An object that lists properties may have others too, as the standard says.
  bool open_objects = false;
};

struct SchemaGrammar {
  std::shared_ptr<Grammar> grammar;
  std::vector<std::string> notes;  // what had no effect
};

Result<SchemaGrammar> GrammarFromJsonSchema(const Json& schema,
                                            const SchemaOptions& options = {});
// Any JSON object: OpenAI's "json_object".
Result<std::shared_ptr<Grammar>> GrammarOfJsonObject();

}  // namespace hearth::grammar
