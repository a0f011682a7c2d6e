// Chat templates: the Jinja programs that come with models and turn a
// conversation into the prompt that the model was trained on.
//
// The engine is a sandbox: a template reads the values it is given and prints
// text. It opens no files, imports nothing, changes no argument, and stays
// within ChatTemplateLimits. What it prints equals the output of Hugging
// Face's apply_chat_template byte for byte; docs/chat-templates.md lists what
// is supported and the known differences.
//
// Threads  a ChatTemplate is immutable; any number of threads may render it.
// Errors   Parse: kCorrupt for a syntax error, kUnsupported for a tag that
//          loads other templates, kResourceFull for a limit. Render:
//          kInvalidArgument when the template refuses the conversation
//          (raise_exception) or fails on it, kUnsupported for a filter or test
//          that does not exist, kResourceFull for a limit. Messages start with
//          "NAME:LINE: ".
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chat/jinja/limits.h"
#include "chat/ordered_json.h"
#include "hearth/result.h"

namespace hearth {

// The wall clock, without a time zone, as templates see it.
std::chrono::local_seconds LocalNow();

struct RenderOptions {
  bool add_generation_prompt = true;
  // More variables: an object, or null for none. They win over the tokens
  // below and over add_generation_prompt; `messages` and `tools` are refused.
  OrderedJson kwargs;
  // A token that the tokenizer does not have is undefined in the template.
  std::optional<std::string> bos_token;
  std::optional<std::string> eos_token;
  std::optional<std::string> unk_token;
  std::chrono::local_seconds now = LocalNow();
};

class ChatTemplate {
 public:
  // `name` is what messages call the template.
  static Result<ChatTemplate> Parse(std::string source, std::string name,
                                    const ChatTemplateLimits& limits = {});

  // The prompt for `messages`, an array. Without tools the template sees none,
  // as it does for `documents`.
  Result<std::string> Render(const OrderedJson& messages,
                             const OrderedJson* tools,
                             const RenderOptions& options) const;

  // Renders with the members of `variables` and nothing else: what a case of a
  // reference engine's own tests gives, which is how this one is compared with
  // it.
  Result<std::string> RenderVariables(const OrderedJson& variables,
                                      const RenderOptions& options) const;

  // The variables that the template expects from outside, sorted: names that
  // it may read before it sets them. "tools" is here when it knows tools,
  // "enable_thinking" when thinking can be turned off.
  const std::vector<std::string>& variables() const;
  bool Reads(std::string_view variable) const;

  const std::string& source() const;

 private:
  struct State;
  explicit ChatTemplate(std::shared_ptr<const State> state)
      : state_(std::move(state)) {}

  std::shared_ptr<const State> state_;
};

}  // namespace hearth
