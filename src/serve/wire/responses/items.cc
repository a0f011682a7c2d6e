#include "serve/wire/responses/items.h"

#include "serve/wire/common/content.h"
#include "serve/wire/common/marked_text.h"
#include "serve/wire/common/tools.h"
#include "serve/wire/store/response_store.h"

namespace hearth::serve {
namespace {

// The texts of a list of parts, one after the other.
Parsed<std::string> TextOfParts(const OrderedJson* parts,
                                const std::string& path,
                                std::string_view type) {
  std::string text;
  for (std::size_t i = 0; parts != nullptr && i < parts->size(); ++i) {
    const std::string at = At(path, i);
    HEARTH_ASSIGN(const std::string found, TypeOf((*parts)[i], at));
    const auto part = (*parts)[i].find("text");
    if (found != type || part == (*parts)[i].end() || !part->is_string()) {
      return BadField(at, "must be a part of type " + std::string(type) + ".");
    }
    text += part->get<std::string>();
  }
  return text;
}

WireError NoItem(const std::string& id) {
  return {.status = 404,
          .code = "item_not_found",
          .param = "input",
          .message = "No item with the id \"" + id +
                     "\" is kept here. Send the item itself."};
}

}  // namespace

void ItemReader::Flush() {
  if (open_) conversation_.Add(turn_);
  turn_ = {};
  open_ = has_text_ = false;
}

Checked ItemReader::Read(const OrderedJson& item, const std::string& path) {
  if (!item.is_object()) return BadField(path, "must be an object.");
  ObjectReader reader(item, path, draft_.ignored);
  const std::string type = reader.Text("type").value_or("message");
  HEARTH_TRY(reader.Check());
  // Of no consequence for the prompt: who made the item, and that it is whole.
  reader.Take({"id", "status"});
  if (type == "message") return ReadMessage(reader, path);
  if (type == "reasoning") return ReadReasoning(reader, path);
  if (type == "function_call") return ReadCall(reader, path, false);
  if (type == "custom_tool_call") return ReadCall(reader, path, true);
  if (type == "function_call_output" || type == "custom_tool_call_output") {
    return ReadOutput(reader, path);
  }
  return BadField(path + ".type",
                  "items of type \"" + type +
                      "\" are not known here. Send messages, reasoning, and "
                      "calls of function or custom tools with their outputs.");
}

Checked ItemReader::ReadMessage(ObjectReader& reader, const std::string& path) {
  const std::string role = reader.Text("role").value_or("");
  const OrderedJson* content = reader.Find("content");
  const bool assistant = role == "assistant";
  HEARTH_ASSIGN(const std::string text,
                TextOfContent(content, path + ".content",
                              assistant ? "" : kBetweenParts, draft_.ignored));
  HEARTH_TRY(reader.Finish());
  if (assistant) {
    if (has_text_ || !turn_.calls.empty()) Flush();
    turn_.content = text;
    open_ = has_text_ = true;
    return Done{};
  }
  Flush();
  if (role != "user" && role != "system" && role != "developer") {
    return BadField(path + ".role",
                    "must be user, system, developer or assistant.");
  }
  conversation_.Add(role == "user" ? "user" : "system", text);
  return Done{};
}

Checked ItemReader::ReadReasoning(ObjectReader& reader,
                                  const std::string& path) {
  const OrderedJson* content = reader.FindArray("content");
  const OrderedJson* summary = reader.FindArray("summary");
  const std::string carried = reader.Text("encrypted_content").value_or("");
  HEARTH_TRY(reader.Finish());
  HEARTH_ASSIGN(std::string text,
                TextOfParts(content, path + ".content", "reasoning_text"));
  HEARTH_ASSIGN(const std::string short_text,
                TextOfParts(summary, path + ".summary", "summary_text"));
  if (text.empty() && !carried.empty()) {
    const ResponseStore* store = draft_.context.store;
    const auto ours =
        UnmarkText(carried, store == nullptr ? nullptr : store->vault());
    // Another server's thought cannot be read, and the turn goes on without.
    if (ours) {
      text = *ours;
    } else {
      draft_.ignored.Add(path + ".encrypted_content");
    }
  }
  // Ours has the whole text as its summary.
  if (text.empty()) text = short_text;
  if (has_text_ || !turn_.calls.empty()) Flush();
  turn_.reasoning += text;
  open_ = true;
  return Done{};
}

Checked ItemReader::ReadCall(ObjectReader& reader, const std::string& path,
                             bool custom) {
  ToolCall call;
  call.id = reader.Text("call_id").value_or("");
  const std::string name = reader.Text("name").value_or("");
  if (name.empty()) reader.Fault("name", "is missing.");
  call.name = ToolSet::ModelName(reader.Text("namespace").value_or(""), name);
  const char* field = custom ? "input" : "arguments";
  const std::string text = reader.Text(field).value_or("");
  HEARTH_TRY(reader.Finish());
  if (custom) {
    call.arguments = CustomArguments(text);
  } else {
    HEARTH_ASSIGN(call.arguments, ParseArguments(text, path + ".arguments"));
  }
  turn_.calls.push_back(std::move(call));
  open_ = true;
  return Done{};
}

Checked ItemReader::ReadOutput(ObjectReader& reader, const std::string& path) {
  Flush();
  const std::string id = reader.Text("call_id").value_or("");
  const OrderedJson* output = reader.Find("output");
  HEARTH_ASSIGN(
      const std::string text,
      TextOfContent(output, path + ".output", kBetweenParts, draft_.ignored));
  HEARTH_TRY(reader.Finish());
  conversation_.AddToolResult(id, "", text);
  return Done{};
}

std::string ResponseIdOf(const std::string& item_id) {
  const std::size_t first = item_id.find('_');
  const std::size_t last = item_id.rfind('_');
  if (first == std::string::npos || last <= first) return {};
  return "resp_" + item_id.substr(first + 1, last - first - 1);
}

Parsed<OrderedJson> FindItem(const std::string& id,
                             const ParseContext& context) {
  const std::string response_id = ResponseIdOf(id);
  if (context.store == nullptr || response_id.empty()) return NoItem(id);
  const auto stored =
      context.store->Find(response_id, context.space, context.now_s);
  if (!stored) return NoItem(id);
  HEARTH_ASSIGN(const OrderedJson response,
                ParseBodyJson(stored->response_json, "input"));
  HEARTH_ASSIGN(const OrderedJson input,
                ParseBodyJson(stored->input_json, "input"));
  const auto output = response.find("output");
  if (output == response.end()) return NoItem(id);
  for (const OrderedJson* items : {&*output, &input}) {
    for (const OrderedJson& item : *items) {
      if (!item.is_object()) continue;
      const auto found = item.find("id");
      if (found != item.end() && *found == id) return item;
    }
  }
  return NoItem(id);
}

}  // namespace hearth::serve
