// hearth's own: what the prompt cache has, and why it has no more.
#include "hearth/cache.h"
#include "serve/routes/routes.h"
#include "serve/turn/prepare.h"

namespace hearth::serve {
namespace {

HttpAnswer JsonText(std::string text) {
  HttpAnswer answer;
  answer.body = std::move(text);
  return answer;
}

HttpAnswer NoStore(const Call& call) {
  WireError error;
  error.status = 404;
  error.type = "not_found_error";
  error.message =
      "this server keeps no prompt cache directory (--prompt-cache-dir)";
  return ErrorAnswer(Dialect::kChat, error, call.id);
}

HttpAnswer Cache(Core& core, const Call& call) {
  const EngineOptions& options = core.engine->options();
  if (options.prompt_cache_dir.empty()) return NoStore(call);
  auto list =
      CacheList(CacheDir(options.prompt_cache_dir, options.cache_key_file));
  if (!list.ok()) {
    return ErrorAnswer(Dialect::kChat, WireErrorOf(list.error()), call.id);
  }
  return JsonText(*std::move(list));
}

// How much of a chat request's prompt, or of {"prompt": text}, would hit.
HttpAnswer Why(Core& core, const Call& call) {
  if (core.engine->options().prompt_cache_dir.empty()) return NoStore(call);
  const auto body = BodyObject(call.http);
  const bool chat = body.ok() && body->contains("messages");
  ParseContext context;
  auto request = ParseRequest(chat ? Dialect::kChat : Dialect::kCompletions,
                              chat ? "/v1/chat/completions" : "/v1/completions",
                              "", call.http.body, context);
  if (!request.ok()) {
    return ErrorAnswer(Dialect::kChat, request.error(), call.id);
  }
  const auto prompts = PreparePrompts(core, *request);
  if (!prompts.ok()) {
    return ErrorAnswer(Dialect::kChat, prompts.error(), call.id);
  }
  auto why = CacheWhy(*core.engine, prompts->front().text);
  if (!why.ok()) {
    return ErrorAnswer(Dialect::kChat, WireErrorOf(why.error()), call.id);
  }
  return JsonText(*std::move(why));
}

constexpr Route kRoutes[] = {{"GET", "/hearth/v1/cache", Cache},
                             {"POST", "/hearth/v1/why", Why}};

}  // namespace

std::span<const Route> HearthRoutes() { return kRoutes; }

}  // namespace hearth::serve
