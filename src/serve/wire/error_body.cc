// The three forms of an error's body.
#include <nlohmann/json.hpp>

#include "serve/wire/request.h"

namespace hearth::serve {
namespace {

using OrderedJson = nlohmann::ordered_json;

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
  // Text from outside may be no UTF-8.
  return body.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

}  // namespace hearth::serve
