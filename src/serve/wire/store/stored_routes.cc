#include "serve/wire/store/stored_routes.h"

#include <algorithm>

#include "serve/wire/json/body_json.h"
#include "serve/wire/messages/notes.h"
#include "serve/wire/store/response_store.h"

namespace hearth::serve {
namespace {

StoredReply Refusal(const WireError& error, const std::string& request_id) {
  return {error.status, ErrorBody(Dialect::kResponses, error, request_id)};
}

WireError NotKept(const std::string& id) {
  return {.status = 404,
          .code = "response_not_found",
          .message = "The response \"" + id + "\" is not kept here."};
}

std::string InputItems(const StoredResponse& stored) {
  auto items = ParseBodyJson(stored.input_json, "input");
  OrderedJson list = {{"object", "list"}, {"data", OrderedJson::array()}};
  list["first_id"] = list["last_id"] = nullptr;
  if (items.ok() && items->is_array() && !items->empty()) {
    const auto id_of = [](const OrderedJson& item) -> OrderedJson {
      if (!item.is_object() || item.find("id") == item.end()) return nullptr;
      return *item.find("id");
    };
    list["first_id"] = id_of(items->front());
    list["last_id"] = id_of(items->back());
    list["data"] = std::move(*items);
  }
  list["has_more"] = false;
  return Dump(list);
}

}  // namespace

std::optional<StoredReply> AskStore(std::string_view method,
                                    std::string_view path, ResponseStore* store,
                                    const std::string& space,
                                    std::int64_t now_s,
                                    const std::string& request_id) {
  if (path.starts_with("/v1")) path.remove_prefix(3);
  constexpr std::string_view kPrefix = "/responses/";
  if (!path.starts_with(kPrefix)) return std::nullopt;
  path.remove_prefix(kPrefix.size());
  const std::size_t slash = path.find('/');
  const std::string id(path.substr(0, slash));
  const std::string_view rest =
      slash == std::string_view::npos ? "" : path.substr(slash + 1);
  const bool known =
      (method == "GET" && (rest.empty() || rest == "input_items")) ||
      (method == "DELETE" && rest.empty()) ||
      (method == "POST" && rest == "cancel");
  if (!known || id.empty()) return std::nullopt;
  const auto stored =
      store == nullptr ? std::nullopt : store->Find(id, space, now_s);
  if (!stored) return Refusal(NotKept(id), request_id);
  if (method == "POST") {
    return Refusal({.message = "Only answers made in the background can be "
                               "cancelled, and here none are. Close the "
                               "connection of one that is on its way."},
                   request_id);
  }
  if (method == "DELETE") {
    (void)store->Delete(id, space);
    return StoredReply{
        200, Dump({{"id", id}, {"object", "response"}, {"deleted", true}})};
  }
  if (rest.empty()) return StoredReply{200, stored->response_json};
  return StoredReply{200, InputItems(*stored)};
}

StoredPrompt PromptRecord(const WireRequest& request, const std::string& id,
                          const std::string& served_model,
                          std::span<const std::int32_t> ids,
                          std::int64_t now_s) {
  StoredPrompt prompt = {.id = id,
                         .space = request.space,
                         .created_s = now_s,
                         .model = served_model,
                         .ids = {ids.begin(), ids.end()}};
  if (request.dialect == Dialect::kMessages && request.notes != nullptr) {
    const auto& notes = static_cast<const MessagesNotes&>(*request.notes);
    prompt.system = notes.system;
    prompt.tools = notes.tools;
  }
  return prompt;
}

std::string WhyMissed(const WireRequest& request,
                      const std::string& served_model,
                      std::span<const std::int32_t> ids,
                      const ResponseStore* store, std::int64_t now_s) {
  if (request.compare_with.empty()) return {};
  std::optional<StoredPrompt> earlier;
  if (store != nullptr) {
    earlier = store->FindPrompt(request.compare_with, request.space, now_s);
  }
  if (!earlier) return Dump({{"type", "previous_message_not_found"}});
  const StoredPrompt now = PromptRecord(request, "", served_model, ids, now_s);
  const auto [end, ignored] = std::mismatch(
      earlier->ids.begin(), earlier->ids.end(), ids.begin(), ids.end());
  const bool same_model = earlier->model == now.model;
  if (same_model && end == earlier->ids.end()) return {};
  const char* type = "messages_changed";
  if (!same_model) {
    type = "model_changed";
  } else if (earlier->system != now.system) {
    type = "system_changed";
  } else if (earlier->tools != now.tools) {
    type = "tools_changed";
  }
  const auto missed = same_model ? earlier->ids.end() - end
                                 : static_cast<std::ptrdiff_t>(ids.size());
  return Dump({{"type", type}, {"cache_missed_input_tokens", missed}});
}

}  // namespace hearth::serve
