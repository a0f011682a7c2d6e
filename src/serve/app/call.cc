#include "serve/app/call.h"

#include <charconv>

namespace hearth::serve {
namespace {

constexpr int kDepthMax = 100;

}  // namespace

Dialect WordsOf(std::string_view path) {
  if (const auto dialect = DialectOf(path)) return *dialect;
  if (path.starts_with("/v1/messages")) return Dialect::kMessages;
  if (path.starts_with("/api/")) return Dialect::kOllamaChat;
  return Dialect::kChat;
}

HttpAnswer JsonAnswer(const OrderedJson& body, int status) {
  HttpAnswer answer;
  answer.status = status;
  answer.body =
      body.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
  return answer;
}

HttpAnswer ErrorAnswer(Dialect words, const WireError& error,
                       const std::string& request_id) {
  HttpAnswer answer;
  answer.status = error.status;
  answer.body = ErrorBody(words, error, request_id);
  if (error.status == 503) answer.headers.push_back({"Retry-After", "2"});
  if (error.status == 401) {
    answer.headers.push_back({"WWW-Authenticate", "Bearer"});
  }
  return answer;
}

WireError WireErrorOf(const Error& error) {
  WireError out;
  out.message = error.message;
  switch (error.code) {
    case Code::kInvalidArgument:
    case Code::kUnsupported:
      break;
    case Code::kNotFound:
      out.status = 404;
      out.type = "not_found_error";
      break;
    case Code::kResourceFull:
    case Code::kCancelled:
      out.status = 503;
      out.type = "overloaded_error";
      break;
    default:
      out.status = 500;
      out.type = "server_error";
  }
  return out;
}

std::string PercentDecoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size()) {
      const char* end = text.data() + i + 3;
      const auto read = std::from_chars(text.data() + i + 1, end, value, 16);
      if (read.ec == std::errc() && read.ptr == end) {
        out.push_back(static_cast<char>(value));
        i += 2;
        continue;
      }
    }
    out.push_back(text[i]);
  }
  return out;
}

Result<OrderedJson> BodyObject(const HttpRequest& request) {
  int deepest = 0;
  const auto watch = [&deepest](int depth, OrderedJson::parse_event_t,
                                OrderedJson&) {
    deepest = std::max(deepest, depth);
    return depth <= kDepthMax;
  };
  OrderedJson body = OrderedJson::parse(request.body, watch,
                                        /*allow_exceptions=*/false);
  if (deepest > kDepthMax || !body.is_object()) {
    return {Code::kInvalidArgument, "the body is no JSON object"};
  }
  return body;
}

}  // namespace hearth::serve
