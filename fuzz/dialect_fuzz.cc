// A request's body from outside: the first byte names the dialect. What is
// taken is answered, so that no request can make a writer fail.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "serve/wire/answer.h"
#include "serve/wire/json/body_json.h"

namespace {

using hearth::serve::Dialect;

constexpr struct {
  Dialect dialect;
  std::string_view path;
} kEndpoints[] = {{Dialect::kChat, "/v1/chat/completions"},
                  {Dialect::kCompletions, "/v1/completions"},
                  {Dialect::kResponses, "/v1/responses"},
                  {Dialect::kMessages, "/v1/messages"},
                  {Dialect::kMessages, "/v1/messages/count_tokens"},
                  {Dialect::kOllamaChat, "/api/chat"},
                  {Dialect::kOllamaGenerate, "/api/generate"},
                  {Dialect::kLlamaCompletion, "/completion"},
                  {Dialect::kLlamaCompletion, "/infill"}};

void Answer(const hearth::serve::WireRequest& request) {
  const auto writer =
      hearth::serve::MakeWriter(request, {.id = "m"}, "r", 1, nullptr);
  using Kind = hearth::AnswerEvent::Kind;
  std::string out = writer->Begin({}, {});
  const std::string tool =
      request.tools.empty() ? "f" : request.tools.begin()->first;
  for (int i = 0; i < request.n_choices(); ++i) {
    out += writer->Event(i, {Kind::kReasoning, -1, "\xe2\x82"}, {});
    out += writer->Event(i, {Kind::kText, -1, "x"}, {{"x", -1, {}}});
    out += writer->Event(i, {Kind::kCallBegin, 0, tool}, {});
    out += writer->Event(i, {Kind::kCallArguments, 0, "{\"input\":"}, {});
    out += writer->FinishChoice(i, hearth::serve::FinishReason::kLength, "");
  }
  out += writer->End({}, {});
  if (out.empty()) std::abort();
  const auto record = writer->TakeRecord();
  if (record && !hearth::serve::ParseBodyJson(record->input_json, "").ok()) {
    std::abort();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  if (size == 0) return 0;
  const auto& endpoint = kEndpoints[data[0] % std::size(kEndpoints)];
  const std::string_view body(reinterpret_cast<const char*>(data) + 1,
                              size - 1);
  const auto request = hearth::serve::ParseRequest(
      endpoint.dialect, endpoint.path, "beta=true", body, {});
  if (!request.ok()) {
    // A refusal says what is wrong.
    if (request.error().message.empty()) std::abort();
    return 0;
  }
  if (!request->count_only && !request->load_only) Answer(*request);
  return 0;
}
