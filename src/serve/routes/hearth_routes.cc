// hearth's own: what the prompt cache has, and why it has no more.
#include "hearth/cache.h"
#include "serve/app/page_desk.h"
#include "serve/page/cache_json.h"
#include "serve/routes/cache_change.h"
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
      "this server keeps no prompts: it was started without a directory for "
      "them";
  return ErrorAnswer(Dialect::kChat, error, call.id);
}

// The stored prompts as a tree, and every block.
HttpAnswer Cache(Core& core, const Call& call) {
  if (core.engine->options().prompt_cache_dir.empty()) {
    return JsonText(CacheTreeJson(PromptTree{}, NowMs()));
  }
  auto tree = CacheTree(DirOf(core));
  if (!tree.ok()) {
    return ErrorAnswer(Dialect::kChat, WireErrorOf(tree.error()), call.id);
  }
  // Text only where its owner wants it, and of nobody else.
  if (core.engine->options().cache_previews && call.space.empty()) {
    ReadPreviews(DirOf(core), tree->prompts);
  }
  return JsonText(CacheTreeJson(*tree, NowMs()));
}

Result<void> ChangeStore(const CacheDir& dir, const CacheChange& change) {
  switch (change.kind) {
    case CacheChange::Kind::kPin:
      HEARTH_TRY(CachePin(dir, change.name));
      break;
    case CacheChange::Kind::kUnpin:
      HEARTH_TRY(CacheUnpin(dir, change.name));
      break;
    case CacheChange::Kind::kEvict:
      HEARTH_TRY(CacheEvict(dir, change.name));
      break;
  }
  return {};
}

HttpAnswer Change(Core& core, const Call& call) {
  if (core.engine->options().prompt_cache_dir.empty()) return NoStore(call);
  const auto change = ParseCacheChange(call.http);
  const auto changed = change.ok() ? ChangeStore(DirOf(core), *change)
                                   : Result<void>(change.error());
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
