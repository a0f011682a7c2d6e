#include "serve/wire/request.h"

#include <array>
#include <utility>

#include "serve/wire/parse.h"

namespace hearth::serve {
namespace {

constexpr std::array<std::pair<std::string_view, Dialect>, 14> kPaths = {{
    {"/v1/chat/completions", Dialect::kChat},
    {"/chat/completions", Dialect::kChat},
    {"/v1/completions", Dialect::kCompletions},
    {"/v1/responses", Dialect::kResponses},
    {"/responses", Dialect::kResponses},
    {"/v1/messages", Dialect::kMessages},
    {"/v1/messages/count_tokens", Dialect::kMessages},
    {"/messages", Dialect::kMessages},
    {"/messages/count_tokens", Dialect::kMessages},
    {"/api/chat", Dialect::kOllamaChat},
    {"/api/generate", Dialect::kOllamaGenerate},
    {"/completion", Dialect::kLlamaCompletion},
    {"/completions", Dialect::kLlamaCompletion},
    {"/infill", Dialect::kLlamaCompletion},
}};

Checked ParseBody(Dialect dialect, Draft& draft) {
  switch (dialect) {
    case Dialect::kChat:
      return ParseChat(draft);
    case Dialect::kCompletions:
      return ParseCompletions(draft);
    case Dialect::kResponses:
      return ParseResponses(draft);
    case Dialect::kMessages:
      return ParseMessages(draft);
    case Dialect::kOllamaChat:
      return ParseOllamaChat(draft);
    case Dialect::kOllamaGenerate:
      return ParseOllamaGenerate(draft);
    case Dialect::kLlamaCompletion:
      return ParseLlamaCompletion(draft);
  }
  return WireError{.status = 404, .message = "No such dialect."};
}

// Queries have no effect anywhere; `beta` is what Anthropic's beta client
// always sends, and is served the same.
void SayQuery(std::string_view query, Ignored& ignored) {
  while (!query.empty()) {
    const std::string_view pair = query.substr(0, query.find('&'));
    query.remove_prefix(std::min(pair.size() + 1, query.size()));
    const std::string_view name = pair.substr(0, pair.find('='));
    if (!name.empty() && name != "beta") ignored.Add("?" + std::string(name));
  }
}

}  // namespace

std::optional<Dialect> DialectOf(std::string_view path) {
  for (const auto& [name, dialect] : kPaths) {
    if (name == path) return dialect;
  }
  return std::nullopt;
}

Parsed<WireRequest> ParseRequest(Dialect dialect, std::string_view path,
                                 std::string_view query, std::string_view body,
                                 const ParseContext& context) {
  HEARTH_ASSIGN(const OrderedJson json, ParseBodyJson(body, ""));
  if (!json.is_object()) {
    return WireError{.message = "The request's body must be a JSON object."};
  }
  Draft draft = {.body = json, .path = path, .context = context};
  draft.request.dialect = dialect;
  draft.request.space = context.space;
  HEARTH_TRY(ParseBody(dialect, draft));
  SayQuery(query, draft.ignored);
  draft.request.ignored = std::move(draft.ignored.names);
  return std::move(draft.request);
}

}  // namespace hearth::serve
