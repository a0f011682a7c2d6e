// From a request as it was parsed to what the scheduler computes.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "serve/app/core.h"
#include "serve/journal/history_ids.h"
#include "serve/wire/request.h"

namespace hearth::serve {

struct PreparedPrompt {
  std::string text;  // for `echo`
  std::vector<std::int32_t> ids;
  std::vector<int> save_points;  // numbers of leading ids
  std::vector<int> marks;        // the same, of messages' ends
  // Reads the answers, one each; null: what comes is text.
  std::vector<std::unique_ptr<AnswerReader>> readers;
};

struct Prepared {
  std::vector<PreparedPrompt> prompts;
  GenerateOptions options;
  // Of a conversation: the prompt as it is computed; null: plain text.
  std::shared_ptr<const RenderedPrompt> rendered;
  HistoryUse history;
  int breakpoint_tokens = 0;  // up to the last cache breakpoint; 0: none
};

// Renders, tokenises, and checks that it fits. Adds to `request.ignored` what
// is found to have no effect.
Parsed<Prepared> Prepare(const Core& core, WireRequest& request);

// Only the prompts: for whoever counts them.
Parsed<std::vector<PreparedPrompt>> PreparePrompts(const Core& core,
                                                   const WireRequest& request);

}  // namespace hearth::serve
