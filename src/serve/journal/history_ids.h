// The ids of a conversation's earlier answers, as they were sampled.
//
// In a rendered prompt an answer stands between what opens it (the generation
// prompt) and an end marker. It is read as the model's own answers are read; if
// the journal knows an answer at this place that reads the same, that one's ids
// take its place. So a thought that the template drops, or a call that it
// writes in another way, is as it is rendered; only ids change, never what is
// said.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "hearth/dialogue.h"
#include "hearth/tokenizer.h"
#include "serve/journal/journal.h"

namespace hearth::serve {

// All ids before a place in a prompt, as a name; grows with the prompt.
class PrefixName {
 public:
  explicit PrefixName(const std::string& space);
  void Add(std::span<const std::int32_t> ids);
  Digest Now() const;

 private:
  Digest chain_;                    // of the whole pieces so far
  std::vector<std::int32_t> rest_;  // less than a piece
};

// What reads answers of one request; a copy of the request is not kept.
struct HistoryReading {
  const Dialogue& dialogue;
  const TextCodec& codec;
  const DialogueRequest& request;
  const RenderedPrompt& prompt;
};

// The name of an answer: what comes before it and what it reads as. Nothing
// when it cannot be read.
std::optional<Digest> AnswerName(const HistoryReading& reading,
                                 const PrefixName& before,
                                 std::span<const std::int32_t> answer);

struct HistoryUse {
  int answers = 0, found = 0;  // "journal 3/4"
};

// Puts the sampled ids into `prompt`, whose answers and message ends move with
// them.
HistoryUse UseSampledIds(Journal& journal, const Dialogue& dialogue,
                         const TextCodec& codec, const DialogueRequest& request,
                         const std::string& space, RenderedPrompt& prompt);

}  // namespace hearth::serve
