// Models, in the form of OpenAI with the members that Anthropic's and Codex's
// clients read.
#include <ctime>

#include "serve/routes/routes.h"
#include "serve/wire/store/stored_routes.h"

namespace hearth::serve {
namespace {

std::string IsoTime(std::int64_t seconds) {
  const std::time_t time = seconds;
  std::tm parts = {};
  ::gmtime_r(&time, &parts);
  char text[32];
  return std::string(
      text, std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts));
}

OrderedJson ModelOf(const Core& core) {
  const ModelInfo& info = core.engine->info();
  return {{"id", core.served.id},
          {"object", "model"},
          {"created", core.served.created},
          {"owned_by", "hearth"},
          {"type", "model"},
          {"display_name", info.name.empty() ? core.served.id : info.name},
          {"created_at", IsoTime(core.served.created)},
          {"max_model_len", core.served.context_tokens},
          {"context_length", core.served.context_tokens},
          {"meta",
           {{"vocab_type", 0},
            {"n_vocab", info.vocab_size},
            {"n_ctx_train", info.context_length},
            {"n_ctx", core.served.context_tokens},
            {"n_embd", info.d_model},
            {"n_params", info.n_parameters},
            {"size", info.weight_bytes}}}};
}

// What Codex asks of a model that it does not know.
OrderedJson CodexModelOf(const Core& core) {
  return {{"slug", core.served.id},
          {"display_name", core.served.id},
          {"context_window", core.served.context_tokens},
          {"visibility", "list"},
          {"supported_in_api", true}};
}

HttpAnswer Models(Core& core, const Call&) {
  return JsonAnswer({{"object", "list"},
                     {"data", OrderedJson::array({ModelOf(core)})},
                     {"models", OrderedJson::array({CodexModelOf(core)})},
                     {"has_more", false},
                     {"first_id", core.served.id},
                     {"last_id", core.served.id}});
}

// Any name is served, so any name is known, unless names are strict.
HttpAnswer OneModel(Core& core, const Call& call) {
  const std::string path = PercentDecoded(call.http.path);
  const std::string name = path.substr(path.find("models/") + 7);
  if (core.strict_model && name != core.served.id) {
    WireError error;
    error.status = 404;
    error.type = "not_found_error";
    error.code = "model_not_found";
    error.param = "model";
    error.message =
        "no model \"" + name + "\" here; this server has " + core.served.id;
    return ErrorAnswer(Dialect::kChat, error, call.id);
  }
  return JsonAnswer(ModelOf(core));
}

HttpAnswer Stored(Core& core, const Call& call) {
  auto reply = AskStore(call.http.method == "HEAD" ? "GET" : call.http.method,
                        call.http.path, core.store.get(), call.space,
                        NowMs() / 1000, call.id);
  if (!reply.has_value()) {
    WireError error;
    error.status = 404;
    error.type = "not_found_error";
    error.message = "no such path here: " + call.http.path;
    return ErrorAnswer(Dialect::kResponses, error, call.id);
  }
  HttpAnswer answer;
  answer.status = reply->status;
  answer.body = std::move(reply->body);
  return answer;
}

constexpr Route kRoutes[] = {
    {"GET", "/v1/responses/*", Stored},  {"DELETE", "/v1/responses/*", Stored},
    {"POST", "/v1/responses/*", Stored}, {"GET", "/v1/models", Models},
    {"GET", "/models", Models},          {"GET", "/v1/models/*", OneModel},
    {"GET", "/models/*", OneModel}};

}  // namespace

std::span<const Route> OpenAiRoutes() { return kRoutes; }

}  // namespace hearth::serve
