// The dialects' own writers; MakeWriter chooses among them.
#pragma once

#include "serve/wire/answer.h"

namespace hearth {
class Vault;
}

namespace hearth::serve {

// What every writer is made of.
struct WriterParts {
  const WireRequest& request;
  const ServedModel& served;
  const std::string& request_id;
  std::int64_t now_s;
  const Vault* vault;  // of reasoning that goes out to come back
};

std::unique_ptr<AnswerWriter> MakeChatWriter(const WriterParts& parts);
std::unique_ptr<AnswerWriter> MakeCompletionsWriter(const WriterParts& parts);
std::unique_ptr<AnswerWriter> MakeResponsesWriter(const WriterParts& parts);
std::unique_ptr<AnswerWriter> MakeMessagesWriter(const WriterParts& parts);
std::unique_ptr<AnswerWriter> MakeOllamaWriter(const WriterParts& parts);
std::unique_ptr<AnswerWriter> MakeLlamaWriter(const WriterParts& parts);

constexpr std::string_view kEventStream = "text/event-stream";
constexpr std::string_view kJsonType = "application/json";
constexpr std::string_view kLinesType = "application/x-ndjson";

}  // namespace hearth::serve
