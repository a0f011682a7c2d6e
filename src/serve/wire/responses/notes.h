// What the writer of /v1/responses reads of its request.
#pragma once

#include <string>

#include "serve/wire/json/body_json.h"
#include "serve/wire/request.h"

namespace hearth::serve {

struct ResponsesNotes : DialectNotes {
  OrderedJson echo = OrderedJson::object();  // fields that the answer repeats
  bool summary = true;                       // the reasoning also as a summary
  bool encrypted = false;  // the reasoning also as encrypted_content
  bool store = true;
  std::string previous_id = {};
  OrderedJson input = OrderedJson::array();  // items, references resolved
};

}  // namespace hearth::serve
