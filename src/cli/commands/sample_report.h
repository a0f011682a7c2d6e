// What `hearth sample` says about a run: the footer and the JSON object.
#pragma once

#include <cstdint>
#include <string>

#include "hearth/engine.h"

namespace hearth::cli {

struct SampleReport {
  SyncReport sync;
  GenerateReport generate;
  KvReport kv;
  DeviceReport device;
  double start_ms = 0;  // process start to ready
  double ttft_ms = 0;   // process start to first token; 0: there was none
  std::uint64_t seed = 0;
  int ids_from_store = 0;  // found by their text
  bool greedy = false;
  bool cached = true;
};

// "20 tokens at 31.5 tokens/s"; of one token, which came with the prompt, no
// rate.
std::string DecodeText(int n_tokens, double decode_ms);

// "12 of 20 guesses right, 2.1 tokens a step (prompt lookup)"; empty without a
// drafter.
std::string SpeculationText(const SpeculationReport& report);

// "end of text", "context full", ...
const char* NameOf(StopReason reason);

// Every figure, and the two lines that most people want. Foreign text in them
// (names, reasons) is escaped.
std::string Footer(const SampleReport& report);
std::string ShortFooter(const SampleReport& report);
std::string ToJson(const SampleReport& report);

}  // namespace hearth::cli
