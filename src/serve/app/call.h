// One request with what answers it, and the words of its refusals.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "base/stopwatch.h"
#include "serve/http/message.h"
#include "serve/wire/request.h"

namespace hearth::serve {

using OrderedJson = nlohmann::ordered_json;

struct Call {
  HttpRequest http;
  std::shared_ptr<Reply> reply;
  std::string id;      // X-Request-Id
  std::string client;  // the name of its key; empty: none was asked for
  std::string space;   // what the KV of its prompts is kept apart by
  std::vector<HttpHeader> headers;  // of whatever answer it gets
  Stopwatch since = {};
};

// In whose words a path's errors are.
Dialect WordsOf(std::string_view path);

HttpAnswer JsonAnswer(const OrderedJson& body, int status = 200);
HttpAnswer ErrorAnswer(Dialect words, const WireError& error,
                       const std::string& request_id);

// An error of the engine as one of HTTP.
WireError WireErrorOf(const Error& error);

// A text's %XX as bytes; what is none stays as it is.
std::string PercentDecoded(std::string_view text);

// The JSON object of a body; kInvalidArgument in words for its sender.
Result<OrderedJson> BodyObject(const HttpRequest& request);

}  // namespace hearth::serve
