// A conversation in the form that one template takes.
//
// Before rendering, equal conversations become equal: text parts and plain
// strings are one text, arguments are objects with their keys in order. What a
// template cannot take (found by rendering sentinels once, when it is opened)
// has one fixed form, so that a growing conversation keeps its beginning: a
// developer's message is a system's; a system message that the template
// refuses, drops or moves stands at the head of the next user's message.
#pragma once

#include <string>
#include <string_view>

#include "chat/template.h"
#include "hearth/result.h"

namespace hearth {

// What a template takes as it is.
struct TemplateTraits {
  bool system_first = false;   // a system message at the start
  bool system_middle = false;  // and behind an answer, at its place
  bool developer = false;      // as a role of its own
  bool user_verbatim = false;  // a user's text is in the prompt, unchanged
  bool any_call_id = false;    // else ids are 9 letters and digits
  std::string reasoning_key;   // of a message; empty: none is read
};

TemplateTraits ProbeTemplate(const ChatTemplate& chat,
                             const RenderOptions& options);

// The messages of a request. kInvalidArgument for what is no list of messages
// with roles, content other than text, and arguments that are no JSON object.
Result<OrderedJson> ReadMessages(std::string_view messages_json);
OrderedJson FormFor(const TemplateTraits& traits, OrderedJson messages);
// kInvalidArgument when a message of a user left nothing in the prompt.
Result<void> CheckTraces(const TemplateTraits& traits,
                         const OrderedJson& messages, std::string_view prompt);

}  // namespace hearth
