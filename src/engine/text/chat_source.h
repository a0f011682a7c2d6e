// Finds the chat template of a model and the token texts it may print.
#pragma once

#include <string>

#include "chat/template.h"
#include "hearth/result.h"
#include "model/weights.h"
#include "text/tokenizer.h"

namespace hearth {

struct ChatSource {
  ChatTemplate chat;
  RenderOptions options;  // bos, eos and unk tokens filled in
  std::string stop_text;  // ends an answer where no token does; mostly empty
};

// kNotFound when the model has none. Sources, in order: GGUF
// tokenizer.chat_template; chat_template.jinja; chat_template of
// tokenizer_config.json (of several, the one named "default").
Result<ChatSource> FindChatSource(const LoadedModel& model,
                                  const Tokenizer& tokenizer);

// A template file on its own, with the token texts of a tokenizer_config.json
// beside it when there is one.
Result<ChatSource> ReadChatSource(const std::string& path);

// ISO 8601 ("2026-01-02T03:04:05", a blank for the T, seconds optional).
Result<std::chrono::local_seconds> ParseWallClock(const std::string& text);

}  // namespace hearth
