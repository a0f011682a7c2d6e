// The options of a model, its KV cache and sampling that several commands have.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cli/options/options.h"
#include "cli/options/sampling_settings.h"
#include "hearth/engine.h"
#include "hearth/options.h"
#include "hearth/result.h"

namespace hearth::cli {

// MODEL (or --model) and the thread counts.
void AddModelOptions(Command& command, EngineOptions& engine);
// Of them, --lora.
void AddAdapterOption(Command& command, EngineOptions& engine);

class EngineArgs {
 public:
  EngineOptions engine;
  SamplingOptions sampling;  // filled by Open
  std::string kv_quantize = "fp16";

  void AddModel(Command& command);
  void AddSampling(Command& command) { sampling_.Add(command); }
  // How keys and values are stored, and which of them are kept.
  void AddKvFormat(Command& command);
  // That, the context and the prompt cache, which is on by default.
  void AddKv(Command& command);
  void AddDraft(Command& command);

  // Whether the user said how much memory KV may take.
  bool ram_budget_given() const { return ram_budget_.given(); }
  bool seed_given() const { return sampling_.seed_given(); }

  // Refuses what would have no effect, then checks the names and fills
  // `engine`. `why_no_cache`: what forbids a prompt cache and guesses,
  // with its option's name; empty: nothing does. kInvalidArgument.
  Result<void> Finalize(const std::string& why_no_cache = {});
  // Opens the engine; then takes the model's own sampling settings where the
  // user said nothing, and warns of what is missing in its files and of a
  // context beyond what it was trained on.
  Result<std::unique_ptr<Engine>> Open(bool quiet);

 private:
  void AddPromptCache(Command& command);
  Result<void> CheckEffects(const std::string& why_no_cache) const;
  void UseModel(const Engine& opened);
  Result<void> FindPromptCache(const std::string& why_no_cache);

  std::string kv_keys_, kv_values_;  // empty: as kv_quantize
  std::string kv_growth_ = "in-place";
  SamplingArgs sampling_;
  bool no_prompt_cache_ = false;
  Option draft_, draft_tokens_, ram_budget_;
  Option cache_dir_, cache_file_, cache_budget_, remote_, remote_deadline_;
  std::vector<Option> of_cache_;      // have an effect with any prompt cache
  std::vector<Option> of_directory_;  // with one in a directory only
};

}  // namespace hearth::cli
