// The options of a model, its KV cache and sampling that several commands have.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "hearth/options.h"
#include "hearth/result.h"

namespace hearth::cli {

struct EngineArgs {
  EngineOptions engine;
  SamplingOptions sampling;
  std::string kv_quantize = "fp32";
  std::string kv_growth = "in-place";
  bool has_seed = false;

  void AddModel(CLI::App& command);
  void AddSampling(CLI::App& command);
  void AddKv(CLI::App& command);
  void AddDraft(CLI::App& command);
  // Checks the names and fills `engine` and `sampling`. kInvalidArgument.
  Result<void> Finalize();
};

}  // namespace hearth::cli
