#include "serve/wire/wire_error.h"

#include "serve/wire/json/body_json.h"

namespace hearth::serve {
namespace {

OrderedJson OrNull(const std::string& text) {
  return text.empty() ? OrderedJson() : OrderedJson(text);
}

}  // namespace

std::string ErrorBody(Dialect dialect, const WireError& error,
                      const std::string& request_id) {
  OrderedJson body;
  switch (dialect) {
    case Dialect::kMessages:
      body = {{"type", "error"},
              {"error", {{"type", error.type}, {"message", error.message}}},
              {"request_id", request_id}};
      break;
    case Dialect::kOllamaChat:
    case Dialect::kOllamaGenerate:
      body = {{"error", error.message}};
      break;
    default:
      body = {{"error",
               {{"message", error.message},
                {"type", error.type},
                {"param", OrNull(error.param)},
                {"code", OrNull(error.code)}}}};
  }
  return Dump(body);
}

WireError ContextExceeded(Dialect dialect, std::int64_t n_prompt,
                          std::int64_t n_context) {
  const std::string prompt = std::to_string(n_prompt);
  const std::string context = std::to_string(n_context);
  WireError error = {.code = "context_length_exceeded", .param = "messages"};
  if (dialect == Dialect::kMessages) {
    error.message =
        "prompt is too long: " + prompt + " tokens > " + context + " maximum";
    return error;
  }
  if (dialect == Dialect::kResponses) error.param = "input";
  if (dialect != Dialect::kChat && dialect != Dialect::kOllamaChat &&
      dialect != Dialect::kResponses) {
    error.param = "prompt";
  }
  error.message = "This model's maximum context length is " + context +
                  " tokens. However, your messages resulted in " + prompt +
                  " tokens.";
  return error;
}

}  // namespace hearth::serve
