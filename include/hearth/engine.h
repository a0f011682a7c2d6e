// The door for embedders: an Engine is a loaded model, a Session one sequence
// with its KV cache.
//
//   auto engine = hearth::Engine::Open({.model_path = "model.gguf"});
//   auto session = (*engine)->NewSession();
//   (*session)->Sync(prompt_ids, {});
//   (*session)->Generate({}, [](const hearth::Token& t) { ...; return true; });
//
// Threads  an Engine and its Sessions are used by one thread at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/options.h"
#include "hearth/result.h"
#include "hearth/sampling_defaults.h"
#include "hearth/tokenizer.h"

namespace hearth {

// One thing that a model's KV cache can do, or the reason why not.
struct Capability {
  std::string name;
  bool supported = false;
  std::string note;
};

struct ModelInfo {
  std::string path;         // empty: the embedded model
  std::string file_format;  // "GGUF v3", "safetensors", ...
  std::string architecture;
  std::string name;
  std::uint64_t n_parameters = 0;
  std::uint64_t weight_bytes = 0;
  int n_layers = 0, n_heads = 0, n_kv_heads = 0, head_dim = 0;
  int d_model = 0, d_mlp = 0, vocab_size = 0, context_length = 0;
  std::string positions;  // "rope", "learned"
  std::string tokenizer;  // "byte-level BPE, 151643 tokens", ...
  // KV bytes per token for every storage format.
  std::vector<std::pair<std::string, std::uint64_t>> kv_bytes_per_token;
  std::vector<std::pair<std::string, std::uint64_t>>
      tensor_types;  // and counts
  std::vector<Capability> capabilities;
  SamplingDefaults sampling;  // what the model's files recommend
};

// How a prompt was obtained.
struct SyncReport {
  int prompt_tokens = 0;
  int reused_tokens = 0;    // not computed again
  std::string reuse_tier;   // "none", "memory", "disk", "file", "remote"
  std::string miss_reason;  // why not more; empty when all was reused
  std::vector<std::string> warnings;  // damaged files set aside, ...
  double lookup_ms = 0;               // finding, verifying and mapping
  double prefill_ms = 0;              // computing what was not reused
};

struct Token {
  std::int32_t id = 0;
  std::string_view text;  // complete UTF-8 characters; may be empty
};

// What guessing ahead brought. All zero without EngineOptions::draft.
struct SpeculationReport {
  std::string drafter;  // "prompt lookup", the draft model's name, ...
  int steps = 0;        // forward steps, with or without guesses
  int drafted = 0;      // guesses that were verified
  int accepted = 0;     // of them: right, thus tokens without a step
  std::uint64_t kv_physical_bytes = 0;  // of a draft model
};

enum class StopReason : std::uint8_t { kLength, kEndOfText, kContext, kCaller };

struct GenerateReport {
  std::vector<std::int32_t> token_ids;  // as sampled, the end marker excluded
  std::string text;
  StopReason stop = StopReason::kLength;
  std::int32_t end_id = -1;   // the end marker that was sampled, or -1
  double first_token_ms = 0;  // from the call to the first token
  double decode_ms = 0;       // from the first token to the last
  SpeculationReport speculation;
};

struct KvReport {
  int tokens = 0;
  std::uint64_t logical_bytes = 0;   // what attention reads
  std::uint64_t physical_bytes = 0;  // what is resident for it, mapped included
  std::uint64_t mapped_bytes = 0;    // of them: shared with the page cache
  int populated_layers = 0;
  int kv_layers = 0;
};

// A prompt's ids, and how many leading ones a stored prompt gave.
struct PromptIds {
  std::vector<std::int32_t> ids;
  int from_store = 0;
};

class Session {
 public:
  virtual ~Session() = default;

  // Called between steps of a long prefill; false stops it (kCancelled; what
  // was computed stays and is handed to the prompt cache).
  using Progress = std::function<bool(int tokens_done, int tokens_total)>;
  // Called for each token; false ends the generation.
  using OnToken = std::function<bool(const Token&)>;

  // Makes the cache hold exactly `tokens`: keeps the longest prefix that the
  // session, the prompt cache file or directory has, computes the rest. The
  // caller always gives the whole prompt. kInvalidArgument for an empty prompt
  // or foreign ids, kResourceFull when it exceeds the context.
  virtual Result<SyncReport> Sync(std::span<const std::int32_t> tokens,
                                  const Progress& progress) = 0;

  // Samples from the state that Sync left. Token text arrives as soon as it is
  // complete. After the first token the prompt is handed to the prompt cache.
  // A draft model reads the prompt then; `on_draft_prefill` is called between
  // its steps as Sync's progress is, and false ends the generation.
  virtual Result<GenerateReport> Generate(
      const GenerateOptions& options, const OnToken& on_token,
      const Progress& on_draft_prefill = nullptr) = 0;

  // The same without any KV cache: every token recomputes the whole sequence.
  virtual Result<GenerateReport> GenerateUncached(
      std::span<const std::int32_t> prompt, const GenerateOptions& options,
      const OnToken& on_token) = 0;

  // Keeps the first `n_tokens`. kInvalidArgument when there are fewer.
  virtual Result<void> Rewind(int n_tokens) = 0;
  // An independent session with the same tokens; KV blocks are shared.
  virtual Result<std::unique_ptr<Session>> Fork() = 0;

  // Hands all that the session holds to the prompt cache, answers included;
  // returns at once. Nothing happens without a prompt cache.
  virtual void Persist() = 0;

  virtual std::span<const std::int32_t> tokens() const = 0;
  virtual KvReport Usage() const = 0;
};

class Engine {
 public:
  // Maps the model and makes its tokenizer; reads no weights. Errors name what
  // is wrong or unsupported.
  static Result<std::unique_ptr<Engine>> Open(const EngineOptions& options);
  virtual ~Engine() = default;

  virtual const ModelInfo& info() const = 0;
  virtual const EngineOptions& options() const = 0;
  virtual const TextCodec& codec() const = 0;
  virtual bool IsEndOfText(std::int32_t id) const = 0;
  virtual int context_tokens() const = 0;

  virtual Result<std::unique_ptr<Session>> NewSession() = 0;

  // The ids to Sync for a prompt that the tokenizer turned into `ids`: where a
  // stored prompt has the same text under other ids (an answer that was
  // sampled) and so spares a block or more, its ids up to a common token
  // boundary, then the rest of `ids`. The answer is then that of these ids.
  // `ids` themselves without a prompt cache directory or without
  // options().cache_by_text.
  virtual PromptIds PreferStoredIds(std::vector<std::int32_t> ids) = 0;

  // Logits of every position, [n_tokens][vocab_size] float32, computed in steps
  // of the given sizes (the last one repeats; empty: one size fits).
  virtual Result<std::vector<float>> Logits(
      std::span<const std::int32_t> tokens, std::span<const int> steps) = 0;

  // Waits until everything handed to the prompt cache is durable, `seconds_max`
  // at most (0: as long as it takes). The first error of a save since the last
  // call, if there was one; kCancelled, saying what is lost, when the time was
  // too short: then nothing is saved any more.
  virtual Result<void> DrainSaves(double seconds_max = 0) = 0;
};

// Description of a model file without opening a tokenizer or a cache.
Result<ModelInfo> InspectModel(const std::string& path);

}  // namespace hearth
