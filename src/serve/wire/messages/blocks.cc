#include "serve/wire/messages/blocks.h"

#include "serve/wire/common/content.h"
#include "serve/wire/common/marked_text.h"
#include "serve/wire/store/response_store.h"

namespace hearth::serve {
namespace {

constexpr std::string_view kBilling = "x-anthropic-billing-header:";
constexpr int kBreakpointsMax = 4;

void FindReferences(const OrderedJson& value, std::set<std::string>& names) {
  if (!value.is_structured()) return;
  if (value.is_object()) {
    const auto type = value.find("type");
    const auto name = value.find("tool_name");
    if (type != value.end() && *type == "tool_reference" &&
        name != value.end() && name->is_string()) {
      names.insert(name->get<std::string>());
      return;
    }
  }
  for (const OrderedJson& inner : value) FindReferences(inner, names);
}

}  // namespace

std::set<std::string> ReferencedTools(const OrderedJson& messages) {
  std::set<std::string> names;
  FindReferences(messages, names);
  return names;
}

Checked BlockReader::ReadCacheControl(ObjectReader& reader) {
  marked_ = false;
  const OrderedJson* control = reader.FindObject("cache_control");
  HEARTH_TRY(reader.Check());
  if (control == nullptr) return Done{};
  const std::string path = reader.PathOf("cache_control");
  ObjectReader inner(*control, path, draft_.ignored);
  const std::string type = inner.Text("type").value_or("");
  if (type != "ephemeral") inner.Fault("type", "must be \"ephemeral\".");
  const std::string ttl = inner.Text("ttl").value_or("5m");
  if (ttl != "5m" && ttl != "1h") inner.Fault("ttl", "must be 5m or 1h.");
  HEARTH_TRY(inner.Finish());
  if (++breakpoints_.n > kBreakpointsMax) {
    return BadField(path, "is the fifth. At most 4 blocks may have it.");
  }
  breakpoints_.ttl_s = std::max(breakpoints_.ttl_s, ttl == "1h" ? 3600 : 300);
  marked_ = true;
  return Done{};
}

Parsed<std::string> BlockReader::ReadText(ObjectReader& reader) {
  HEARTH_TRY(ReadCacheControl(reader));
  const auto text = reader.Text("text");
  if (!text) reader.Fault("text", "is missing.");
  HEARTH_TRY(reader.Finish());
  return *text;
}

Checked BlockReader::ReadSystem(const OrderedJson& system) {
  if (system.is_string()) {
    std::string text = system.get<std::string>();
    if (text.starts_with(kBilling)) {
      const std::size_t end = text.find('\n');
      text.erase(0, end == std::string::npos ? end : end + 1);
      draft_.ignored.Add("system");
    }
    if (!text.empty()) conversation_.Add("system", text);
    return Done{};
  }
  if (!system.is_array()) {
    return BadField("system", "must be a string or an array of text blocks.");
  }
  std::string text;
  bool any = false;
  bool marked = false;
  for (std::size_t i = 0; i < system.size(); ++i) {
    const std::string path = At("system", i);
    HEARTH_ASSIGN(const std::string type, TypeOf(system[i], path));
    if (type != "text") return NoText(path, type);
    ObjectReader reader(system[i], path, draft_.ignored);
    reader.Take({"type"});
    HEARTH_ASSIGN(const std::string block, ReadText(reader));
    marked = marked || marked_;
    if (!any && block.starts_with(kBilling)) {
      draft_.ignored.Add(path);
      continue;
    }
    if (any) text += kBetweenParts;
    text += block;
    any = true;
  }
  if (any) conversation_.Add("system", text);
  if (any && marked) breakpoints_.messages.push_back(conversation_.size());
  return Done{};
}

Checked BlockReader::ReadMessage(const OrderedJson& message,
                                 const std::string& path) {
  if (!message.is_object()) return BadField(path, "must be an object.");
  ObjectReader reader(message, path, draft_.ignored);
  const std::string role = reader.Text("role").value_or("");
  const OrderedJson* content = reader.Find("content");
  HEARTH_TRY(reader.Finish());
  if (role != "user" && role != "assistant" && role != "system") {
    return BadField(path + ".role", "must be user, assistant or system.");
  }
  const std::string inner = path + ".content";
  if (content == nullptr || (!content->is_string() && !content->is_array())) {
    return BadField(inner, "must be a string or an array of blocks.");
  }
  if (content->is_string()) {
    const std::string text = content->get<std::string>();
    if (role == "assistant") {
      conversation_.Add(AssistantTurn{.content = text});
    } else {
      conversation_.Add(role, text);
    }
    return Done{};
  }
  if (role == "assistant") return ReadAssistant(*content, inner);
  if (role == "user") return ReadUser(*content, inner);
  std::string text;
  bool marked = false;
  for (std::size_t i = 0; i < content->size(); ++i) {
    HEARTH_ASSIGN(const std::string type, TypeOf((*content)[i], At(inner, i)));
    if (type != "text") return NoText(At(inner, i), type);
    ObjectReader block((*content)[i], At(inner, i), draft_.ignored);
    block.Take({"type"});
    HEARTH_ASSIGN(const std::string piece, ReadText(block));
    marked = marked || marked_;
    if (i > 0) text += kBetweenParts;
    text += piece;
  }
  conversation_.Add("system", text);
  if (marked) breakpoints_.messages.push_back(conversation_.size());
  return Done{};
}

Checked BlockReader::ReadUser(const OrderedJson& content,
                              const std::string& path) {
  std::string text;
  bool any = false;
  bool marked = false;
  const auto flush = [&] {
    if (any) conversation_.Add("user", text);
    if (any && marked) breakpoints_.messages.push_back(conversation_.size());
    text.clear();
    any = marked = false;
  };
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string at = At(path, i);
    HEARTH_ASSIGN(const std::string type, TypeOf(content[i], at));
    ObjectReader reader(content[i], at, draft_.ignored);
    reader.Take({"type"});
    if (type == "tool_result") {
      flush();
      HEARTH_TRY(ReadToolResult(reader, at));
      continue;
    }
    if (type != "text") return NoText(at, type);
    HEARTH_ASSIGN(const std::string piece, ReadText(reader));
    if (any) text += kBetweenParts;
    text += piece;
    any = true;
    marked = marked || marked_;
  }
  flush();
  return Done{};
}

Checked BlockReader::ReadToolResult(ObjectReader& reader,
                                    const std::string& path) {
  HEARTH_TRY(ReadCacheControl(reader));
  const bool marked = marked_;
  const std::string id = reader.Text("tool_use_id").value_or("");
  const OrderedJson* content = reader.Find("content");
  // The template has no place for it; the text says what went wrong.
  if (reader.Bool("is_error", false)) draft_.ignored.Add(path + ".is_error");
  HEARTH_TRY(reader.Finish());
  std::string text;
  if (content != nullptr && content->is_array()) {
    for (std::size_t i = 0; i < content->size(); ++i) {
      const std::string at = At(path + ".content", i);
      HEARTH_ASSIGN(const std::string type, TypeOf((*content)[i], at));
      ObjectReader block((*content)[i], at, draft_.ignored);
      block.Take({"type"});
      std::string piece;
      if (type == "tool_reference") {
        HEARTH_TRY(ReadCacheControl(block));
        piece = block.Text("tool_name").value_or("");
        HEARTH_TRY(block.Finish());
      } else if (type == "text") {
        HEARTH_ASSIGN(piece, ReadText(block));
      } else {
        return NoText(at, type);
      }
      if (i > 0) text += kBetweenParts;
      text += piece;
    }
  } else if (content != nullptr && content->is_string()) {
    text = content->get<std::string>();
  } else if (content != nullptr) {
    return BadField(path + ".content",
                    "must be a string or an array of blocks.");
  }
  conversation_.AddToolResult(id, "", text);
  if (marked) breakpoints_.messages.push_back(conversation_.size());
  return Done{};
}

Checked BlockReader::ReadThinking(ObjectReader& reader, const std::string& path,
                                  AssistantTurn& turn) {
  const std::string thinking = reader.Text("thinking").value_or("");
  const std::string signature = reader.Text("signature").value_or("");
  HEARTH_TRY(reader.Finish());
  if (!thinking.empty()) {
    turn.reasoning += thinking;
    return Done{};
  }
  if (signature.empty() || signature == kShownMark) return Done{};
  const ResponseStore* store = draft_.context.store;
  const auto text =
      UnmarkText(signature, store == nullptr ? nullptr : store->vault());
  // Another server's thought cannot be read, and the turn goes on without it.
  if (text) {
    turn.reasoning += *text;
  } else {
    draft_.ignored.Add(path);
  }
  return Done{};
}

Checked BlockReader::ReadToolUse(ObjectReader& reader, AssistantTurn& turn) {
  ToolCall call;
  call.id = reader.Text("id").value_or("");
  call.name = reader.Text("name").value_or("");
  if (call.name.empty()) reader.Fault("name", "is missing.");
  const OrderedJson* input = reader.FindObject("input");
  call.arguments = input == nullptr ? OrderedJson::object() : *input;
  reader.Take({"caller"});
  HEARTH_TRY(reader.Finish());
  turn.calls.push_back(std::move(call));
  return Done{};
}

Checked BlockReader::ReadAssistant(const OrderedJson& content,
                                   const std::string& path) {
  AssistantTurn turn;
  bool marked = false;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const std::string at = At(path, i);
    HEARTH_ASSIGN(const std::string type, TypeOf(content[i], at));
    ObjectReader reader(content[i], at, draft_.ignored);
    reader.Take({"type"});
    HEARTH_TRY(ReadCacheControl(reader));
    marked = marked || marked_;
    if (type == "text") {
      const auto text = reader.Text("text");
      if (!text) reader.Fault("text", "is missing.");
      HEARTH_TRY(reader.Finish());
      turn.content += *text;
    } else if (type == "thinking") {
      HEARTH_TRY(ReadThinking(reader, at, turn));
    } else if (type == "redacted_thinking") {
      draft_.ignored.Add(at);
    } else if (type == "tool_use") {
      HEARTH_TRY(ReadToolUse(reader, turn));
    } else {
      return NoText(at, type);
    }
  }
  conversation_.Add(turn);
  if (marked) breakpoints_.messages.push_back(conversation_.size());
  return Done{};
}

}  // namespace hearth::serve
