// Any bytes as a chat template, rendered over a small conversation: parsing
// and rendering end with a value or an Error. When the input holds a NUL, what
// follows it is the conversation.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "chat/template.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data,
                                      std::size_t size) {
  using namespace hearth;
  static const OrderedJson kMessages = *ParseOrderedJson(
      R"([{"role": "system", "content": "Be kind."},
          {"role": "user", "content": "Hi <b>\u00e9</b>"},
          {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function":
              {"name": "add", "arguments": {"a": 1, "b": 2.5}}}]}])",
      "conversation");
  static const OrderedJson kTools = *ParseOrderedJson(
      R"([{"type": "function", "function": {"name": "add", "parameters":
            {"type": "object", "properties": {"a": {"type": "number"}}}}}])",
      "tools");
  // Small limits keep one input in the milliseconds.
  ChatTemplateLimits limits;
  limits.steps_max = 100'000;
  limits.string_bytes_max = 1 << 18;
  limits.output_bytes_max = 1 << 18;
  limits.built_bytes_max = 8 << 20;
  limits.range_max = 10'000;

  std::string source(reinterpret_cast<const char*>(data), size);
  OrderedJson messages = kMessages;
  const std::size_t nul = source.find('\0');
  if (nul != std::string::npos) {
    Result<OrderedJson> json =
        ParseOrderedJson(source.substr(nul + 1), "input");
    if (json.ok()) messages = *json;
    source.resize(nul);
  }
  const Result<ChatTemplate> chat =
      ChatTemplate::Parse(std::move(source), "fuzz", limits);
  if (!chat.ok()) {
    if (chat.error().message.empty()) std::abort();
    return 0;
  }
  RenderOptions options;
  options.bos_token = "<s>";
  options.eos_token = "</s>";
  options.now = std::chrono::local_seconds(std::chrono::seconds(1767323045));
  const Result<std::string> first = chat->Render(messages, &kTools, options);
  const Result<std::string> again = chat->Render(messages, &kTools, options);
  // A rendering depends on nothing but its arguments.
  if (first.ok() != again.ok()) std::abort();
  if (first.ok() && *first != *again) std::abort();
  if (!first.ok() && first.error().message.empty()) std::abort();
  return 0;
}
