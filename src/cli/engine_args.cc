#include "cli/engine_args.h"

#include <random>

namespace hearth::cli {

void AddModelOptions(CLI::App& command, EngineOptions& engine) {
  command.add_option("MODEL", engine.model_path,
                     "GGUF file, .tinygpt file or Hugging Face directory; "
                     "default: the small model inside the program");
  command
      .add_option("--threads,-t", engine.n_threads,
                  "default: the processors this process may use")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--threads-prefill", engine.n_threads_prefill,
                  "for computing prompts; default: as many as --threads")
      ->check(CLI::PositiveNumber);
}

void EngineArgs::AddModel(CLI::App& command) {
  AddModelOptions(command, engine);
}

void EngineArgs::AddSampling(CLI::App& command) {
  command
      .add_option("--temperature,--temp", sampling.temperature, "0 is greedy")
      ->capture_default_str();
  command.add_option("--top-k", sampling.top_k, "keep the k likeliest; 0: off")
      ->capture_default_str();
  command
      .add_option("--top-p", sampling.top_p,
                  "keep the likeliest that add up to p; 1: off")
      ->capture_default_str();
  command
      .add_option("--min-p", sampling.min_p,
                  "drop what is rarer than p times the likeliest; 0: off")
      ->capture_default_str();
  command
      .add_option("--seed", sampling.seed,
                  "of the random draws; a new one each run by default")
      ->each([this](const std::string&) { has_seed = true; });
}

void EngineArgs::AddKvFormat(CLI::App& command) {
  command
      .add_option("--kv-quantize", kv_quantize,
                  "storage of keys and values: fp32, fp16, bf16, int8, int4")
      ->capture_default_str();
  command.add_option("--kv-quantize-keys", kv_keys, "of the keys alone");
  command.add_option("--kv-quantize-values", kv_values, "of the values alone");
  command
      .add_option("--streaming-llm-sink", engine.streaming_sink,
                  "first tokens that stay in sight (with "
                  "--streaming-llm-window)")
      ->check(CLI::NonNegativeNumber);
  command
      .add_option("--streaming-llm-window", engine.streaming_window,
                  "newest tokens in sight; older ones are let go of and "
                  "the text may grow beyond the trained context")
      ->check(CLI::PositiveNumber);
}

void EngineArgs::AddKv(CLI::App& command) {
  AddKvFormat(command);
  command.add_flag("--kv-preallocate,!--no-kv-preallocate",
                   engine.kv_preallocate,
                   "fault the KV memory of the whole context in at the start");
  command
      .add_option("--kv-growth", kv_growth,
                  "in-place, or concat (reference: copies at every step)")
      ->capture_default_str();
  command
      .add_option("--context", engine.context_tokens,
                  "tokens of context; default: what the model was trained on")
      ->check(CLI::PositiveNumber);
  command
      .add_option("--kv-ram-budget", engine.kv_ram_budget_bytes,
                  "bytes of memory that KV may take, mapped blocks not "
                  "counted (K, M, G are known); 0: no limit")
      ->transform(CLI::AsSizeValue(true));
  command.add_option("--cache-prompt", engine.prompt_cache_file,
                     "keep the prompt's KV in this one file; wins over the "
                     "directory");
  command.add_option("--prompt-cache-dir", engine.prompt_cache_dir,
                     "keep and reuse prompts' KV in this directory");
  command.add_option("--cache-namespace", engine.cache_namespace,
                     "entries of one name space are invisible to others");
  command
      .add_option("--cache-disk-budget", engine.cache_disk_budget_bytes,
                  "bytes the directory may take (K, M, G are known); 0: no "
                  "limit")
      ->transform(CLI::AsSizeValue(true));
  command.add_option("--cache-remote", engine.cache_remote,
                     "also share blocks through a Redis server: "
                     "redis://[:password@]host:port/db, rediss:// for TLS");
  command
      .add_option("--cache-remote-deadline", engine.cache_remote_deadline_ms,
                  "milliseconds that a lookup waits for it")
      ->capture_default_str()
      ->check(CLI::Range(1, 600'000));
  command.add_option("--cache-key-file", engine.cache_key_file,
                     "encrypt what is stored with the key in this file: 32 "
                     "bytes, or 64 hex digits");
  command.add_flag("--verify-model", engine.verify_model,
                   "read all weights to know whose KV is stored, instead of "
                   "trusting the files' size and times");
  command.add_flag("--cache-always", engine.cache_always,
                   "load stored KV even where computing it would be faster");
  command.add_flag("--cache-by-text", engine.cache_by_text,
                   "also find stored prompts whose text is the same and whose "
                   "token ids are not; goes on from their ids");
  command.add_flag("--no-verify{false}", engine.cache_verify,
                   "use stored KV without checking its checksums");
  command.add_flag("--cache-previews", engine.cache_previews,
                   "keep the beginning of each prompt readable beside it");
}

void EngineArgs::AddDraft(CLI::App& command) {
  command.add_option("--draft", engine.draft,
                     "guess ahead: prompt-lookup, a smaller model of the same "
                     "vocabulary, or a .heads file");
  command
      .add_option("--draft-tokens", engine.draft_tokens,
                  "guesses in one step at most")
      ->capture_default_str();
}

Result<void> EngineArgs::Finalize() {
  const auto storage = [](const std::string& option,
                          const std::string& name) -> Result<KvStorage> {
    const auto known = KvStorageNamed(name);
    if (known.has_value()) return *known;
    return {Code::kInvalidArgument,
            option + " " + name +
                ": not known; use fp32, fp16, bf16, int8 or int4"};
  };
  HEARTH_ASSIGN(engine.kv_storage, storage("--kv-quantize", kv_quantize));
  if (!kv_keys.empty()) {
    HEARTH_ASSIGN(engine.kv_keys, storage("--kv-quantize-keys", kv_keys));
  }
  if (!kv_values.empty()) {
    HEARTH_ASSIGN(engine.kv_values, storage("--kv-quantize-values", kv_values));
  }
  if (kv_growth == "concat") {
    engine.kv_growth = KvGrowth::kConcat;
  } else if (kv_growth != "in-place") {
    return {Code::kInvalidArgument,
            "--kv-growth " + kv_growth + ": use in-place or concat"};
  }
  if (!has_seed) {
    std::random_device device;
    sampling.seed = (std::uint64_t{device()} << 32) | std::uint64_t{device()};
  }
  return {};
}

}  // namespace hearth::cli
