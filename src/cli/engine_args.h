// The options of a model, its KV cache and sampling that several commands have.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "hearth/options.h"
#include "hearth/result.h"

namespace hearth::cli {

// MODEL and the thread counts.
void AddModelOptions(CLI::App& command, EngineOptions& engine);

struct EngineArgs {
  EngineOptions engine;
  SamplingOptions sampling;
  std::string kv_quantize = "fp32";
  std::string kv_keys, kv_values;  // empty: as kv_quantize
  std::string kv_growth = "in-place";
  bool has_seed = false;

  void AddModel(CLI::App& command);
  void AddSampling(CLI::App& command);
  // How keys and values are stored, and which of them are kept.
  void AddKvFormat(CLI::App& command);
  // That, the context and the prompt cache.
  void AddKv(CLI::App& command);
  void AddDraft(CLI::App& command);
  // Checks the names and fills `engine` and `sampling`. kInvalidArgument.
  Result<void> Finalize();
};

}  // namespace hearth::cli
