// What a request cost, for its answer's headers, the log and the metrics.
#pragma once

#include <string>
#include <vector>

#include "serve/app/call.h"
#include "serve/app/core.h"
#include "serve/wire/answer.h"

namespace hearth::serve {

// One prompt of a request; most have one.
struct TurnPrompt {
  int tokens = 0, reused = 0, done = 0;
  bool started = false, ended = false;
  std::string tier = {}, miss = {};
  MissKind miss_kind = {};
  JobReport report = {};  // complete at its end
};

Usage UsageOf(const std::vector<TurnPrompt>& prompts, int breakpoint_tokens);
Figures FiguresOf(const std::vector<TurnPrompt>& prompts);

// X-Hearth-Prompt and its kin.
void AddTurnHeaders(std::vector<HttpHeader>& headers, const Usage& usage,
                    const Figures& figures,
                    const std::vector<std::string>& ignored);

struct TurnRecord {
  int status = 200;
  std::string fault, label, cancelled;
  bool streamed = false, generated = false;
  MissKind miss_kind = {};  // of the first prompt that missed something
  int preemptions = 0;
  Usage usage;
  Figures figures;
};

// Into the log and the metrics.
void WriteTurnRecord(Core& core, const Call& call, const TurnRecord& record);
// The same for a request that no answer was computed for.
void WriteRecord(Core& core, const Call& call, int status);

}  // namespace hearth::serve
