// hearth's own: what the prompt cache has, and why it has no more.
#include "hearth/cache.h"
#include "serve/app/page_desk.h"
#include "serve/page/cache_json.h"
#include "serve/routes/routes.h"
#include "serve/turn/prepare.h"

namespace hearth::serve {
namespace {

HttpAnswer JsonText(std::string text) {
  HttpAnswer answer;
  answer.body = std::move(text);
  return answer;
}

CacheDir DirOf(const Core& core) {
  const EngineOptions& options = core.engine->options();
  return {options.prompt_cache_dir, options.cache_key_file};
}

HttpAnswer NoStore(const Call& call) {
  WireError error;
  error.status = 404;
  error.type = "not_found_error";
  error.message =
      "this server keeps no prompt cache directory (--prompt-cache-dir)";
  return ErrorAnswer(Dialect::kChat, error, call.id);
}

// The stored prompts as a tree, and every block.
HttpAnswer Cache(Core& core, const Call& call) {
  if (core.engine->options().prompt_cache_dir.empty()) {
    return JsonText(CacheTreeJson(PromptTree{}, NowMs()));
  }
  const auto tree = CacheTree(DirOf(core));
  if (!tree.ok()) {
    return ErrorAnswer(Dialect::kChat, WireErrorOf(tree.error()), call.id);
  }
  return JsonText(CacheTreeJson(*tree, NowMs()));
}

// {"pin": name}, {"unpin": name} or {"evict": name}.
Result<void> ChangeStore(const CacheDir& dir, const OrderedJson& body) {
  if (body.size() != 1 || !body.begin()->is_string()) {
    return {Code::kInvalidArgument,
            "say one of {\"pin\": name}, {\"unpin\": name} and "
            "{\"evict\": name}"};
  }
  const std::string& what = body.begin().key();
  const auto name = body.begin()->get<std::string>();
  if (what == "pin") {
    HEARTH_TRY(CachePin(dir, name));
  } else if (what == "unpin") {
    HEARTH_TRY(CacheUnpin(dir, name));
  } else if (what == "evict") {
    HEARTH_TRY(CacheEvict(dir, name));
  } else {
    return {Code::kInvalidArgument,
            "a store is changed by pin, unpin or evict"};
  }
  return {};
}

HttpAnswer Change(Core& core, const Call& call) {
  if (core.engine->options().prompt_cache_dir.empty()) return NoStore(call);
  const auto body = BodyObject(call.http);
  const auto changed =
      body.ok() ? ChangeStore(DirOf(core), *body) : Result<void>(body.error());
  if (!changed.ok()) {
    return ErrorAnswer(Dialect::kChat, WireErrorOf(changed.error()), call.id);
  }
  core.page->StoreChanged();
  return JsonAnswer(OrderedJson::object());
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
  const auto why = CacheWhy(*core.engine, prompts->front().ids);
  if (!why.ok()) {
    return ErrorAnswer(Dialect::kChat, WireErrorOf(why.error()), call.id);
  }
  return JsonText(CacheWhyJson(*why));
}

constexpr Route kRoutes[] = {{"GET", "/hearth/v1/cache", Cache},
                             {"POST", "/hearth/v1/cache", Change},
                             {"POST", "/hearth/v1/why", Why}};

}  // namespace

std::span<const Route> HearthRoutes() { return kRoutes; }

}  // namespace hearth::serve
