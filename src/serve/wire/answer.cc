#include "serve/wire/answer.h"

#include "serve/wire/store/response_store.h"
#include "serve/wire/writer/writers.h"

namespace hearth::serve {

std::unique_ptr<AnswerWriter> MakeWriter(const WireRequest& request,
                                         const ServedModel& served,
                                         const std::string& request_id,
                                         std::int64_t now_s,
                                         const ResponseStore* store) {
  const WriterParts parts = {request, served, request_id, now_s,
                             store == nullptr ? nullptr : store->vault()};
  switch (request.dialect) {
    case Dialect::kChat:
      return MakeChatWriter(parts);
    case Dialect::kCompletions:
      return MakeCompletionsWriter(parts);
    case Dialect::kResponses:
      return MakeResponsesWriter(parts);
    case Dialect::kMessages:
      return MakeMessagesWriter(parts);
    case Dialect::kOllamaChat:
    case Dialect::kOllamaGenerate:
      return MakeOllamaWriter(parts);
    case Dialect::kLlamaCompletion:
      break;
  }
  return MakeLlamaWriter(parts);
}

}  // namespace hearth::serve
