// The chat templates that a model's files hold, and which of them is used: the
// one rule for rendering, chatting and converting.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "hearth/result.h"
#include "model/weights.h"

namespace hearth {

struct NamedTemplate {
  std::string name;  // "default", "tool_use", "rag", ...
  std::string text;
  std::string where;  // the file, for messages
};

// In the order in which the files have them. Empty when there is none, and for
// a model of bytes. GGUF: tokenizer.chat_template is "default" and
// tokenizer.chat_template.NAME another. A directory: chat_template.jinja is
// "default" and additional_chat_templates/NAME.jinja another; without it
// chat_template of tokenizer_config.json, a text or a list of {"name",
// "template"}; without that chat_template.json. kCorrupt for a member of
// another form.
Result<std::vector<NamedTemplate>> ReadChatTemplates(const LoadedModel& model);

// "tool_use" when there are tools and it exists, else "default"; nullptr when
// there is none. kNotFound, naming them, when none of several is "default".
Result<const NamedTemplate*> PickChatTemplate(
    std::span<const NamedTemplate> templates, bool with_tools,
    const std::string& what);

}  // namespace hearth
