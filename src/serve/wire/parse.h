// The dialects' own readers; ParseRequest chooses among them.
#pragma once

#include "serve/wire/json/object_reader.h"
#include "serve/wire/request.h"

namespace hearth::serve {

// A request on its way: what every reader fills in.
struct Draft {
  const OrderedJson& body;
  std::string_view path;
  const ParseContext& context;
  WireRequest request = {};
  Ignored ignored = {};
};

Checked ParseChat(Draft& draft);
Checked ParseCompletions(Draft& draft);
Checked ParseResponses(Draft& draft);
Checked ParseMessages(Draft& draft);
Checked ParseOllamaChat(Draft& draft);
Checked ParseOllamaGenerate(Draft& draft);
Checked ParseLlamaCompletion(Draft& draft);

}  // namespace hearth::serve
