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
};

// The model's own template (chat_templates.h says which); `with_tools`: for a
// conversation that offers tools. kNotFound when the model has none.
Result<ChatSource> FindChatSource(const LoadedModel& model,
                                  const Tokenizer& tokenizer, bool with_tools);

// A template file on its own, with the token texts of a tokenizer_config.json
// beside it when there is one.
Result<ChatSource> ReadChatSource(const std::string& path);

// ISO 8601 ("2026-01-02T03:04:05", a blank for the T, seconds optional).
Result<std::chrono::local_seconds> ParseWallClock(const std::string& text);

}  // namespace hearth
