// The door for embedders: an Engine is a loaded model, a Session one sequence
// with its KV cache.
//
//   auto engine = hearth::Engine::Open({.model_path = "model.gguf"});
//   auto session = (*engine)->NewSession();
//   (*session)->Sync(prompt_ids, {});
//   (*session)->Generate({}, [](const hearth::Token& t) { ...; return true; });
//
// Threads  an Engine may be used from several threads at once, a Session by one
//          at a time (a second one is refused, kInvalidArgument; callbacks may
//          use the session that called them). Sessions of one engine work side
//          by side: forward steps take turns, everything else runs at the same
//          time.
// Blocking Open, InspectModel, Match and DrainSaves wait for files and the
//          network; Sync, Step, Generation::Next, Generate, Rewind and
//          Logits compute, and wait for their turn. Everything else returns at
//          once; saving is done by a thread of the engine's own.
// Lifetime a Session keeps what it needs of its Engine: either may go first.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "hearth/options.h"
#include "hearth/result.h"
#include "hearth/sampling_defaults.h"
#include "hearth/session.h"
#include "hearth/tokenizer.h"

namespace hearth {

// One thing that a model's KV cache can do, or the reason why not.
struct Capability {
  std::string name;
  bool supported = false;
  std::string note;
};

// An adapter beside the model's weights.
struct AdapterInfo {
  std::string path;
  float scale = 1;
  int n_layers = 0;  // linear layers that it changes
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
  std::vector<AdapterInfo> adapters;  // ordered by their content
  SamplingDefaults sampling;          // what the model's files recommend
  // What they lack, so that answers may be worse.
  std::vector<std::string> warnings;
};

// What the forward pass runs on.
struct DeviceReport {
  std::string name;                // "CPU", or the card's
  std::string why;                 // why not a card that is there; or empty
  std::string note = {};           // why no card was looked for; or empty
  std::uint64_t weight_bytes = 0;  // on the card
  std::uint64_t kv_bytes = 0;      // of the card, for keys and values
};

// KV memory of all sessions of an engine; what several hold counts once.
struct KvMemory {
  std::uint64_t held_bytes = 0;    // of this process; waiting saves included
  std::uint64_t state_bytes = 0;   // of them: states of models that carry them
  std::uint64_t mapped_bytes = 0;  // shared with the page cache
};

// What is on its way to the prompt cache, and what came of it.
struct SaveReport {
  std::uint64_t waiting_bytes = 0;  // of memory that saves keep
  std::uint64_t n_written = 0;      // saves
  std::uint64_t n_lost = 0;         // saves that failed or were skipped
};

// A prompt's ids, and how many leading ones a stored prompt gave.
struct PromptIds {
  std::vector<std::int32_t> ids;
  int from_store = 0;
};

struct EngineCore;

// Which logits of its tokens a session wants of a step.
enum class StepLogits : std::uint8_t { kNone, kLast, kAll };

// What one session does in a step.
struct SessionStep {
  Session* session;
  std::span<const std::int32_t> tokens;  // appended; at least 1
  StepLogits want = StepLogits::kLast;
};

class Engine {
 public:
  // Maps the model and makes its tokenizer. Reads weights only to know whose KV
  // is stored: with a prompt cache that does not know the file yet, or
  // options.verify_model. `on_read` is told how many of their bytes that were.
  // Errors name what is wrong or unsupported.
  using OnRead = std::function<void(std::uint64_t done, std::uint64_t total)>;
  static Result<std::unique_ptr<Engine>> Open(const EngineOptions& options,
                                              const OnRead& on_read = nullptr);
  ~Engine();

  const ModelInfo& info() const { return info_; }
  const DeviceReport& device() const;
  const EngineOptions& options() const;
  const TextCodec& codec() const { return *codec_; }
  int context_tokens() const;

  Result<std::unique_ptr<Session>> NewSession(
      const SessionOptions& options = {});

  // What the prompt cache has of `tokens`; nothing is computed. `n_held`: how
  // many of them the session that it is for has (Session::Held), `key_space`:
  // that session's.
  PrefixMatch Match(std::span<const std::int32_t> tokens, int n_held = 0,
                    const std::string& key_space = {});

  // One forward step that advances different sessions of this engine together;
  // what each gets is, bit for bit, what it would get alone. At most
  // kStepTokensMax tokens in all. After an error no session has changed.
  // kInvalidArgument for foreign ids or sessions, kResourceFull past the
  // context or the memory budget.
  static constexpr int kStepTokensMax = 512;
  Result<void> Step(std::span<const SessionStep> steps);

  // The ids to Sync for a prompt that the tokenizer turned into `ids`: where a
  // stored prompt has the same text under other ids (an answer that was
  // sampled) and so spares a block or more, its ids up to a common token
  // boundary, then the rest of `ids`. The answer is then that of these ids.
  // `ids` themselves without a prompt cache directory or without
  // options().cache_by_text.
  PromptIds PreferStoredIds(std::vector<std::int32_t> ids);

  // Logits of every position, [n_tokens][vocab_size] float32, computed in steps
  // of the given sizes (the last one repeats; empty: one size fits).
  Result<std::vector<float>> Logits(std::span<const std::int32_t> tokens,
                                    std::span<const int> steps);

  // Whether the model carries states from token to token, so that a prompt can
  // be begun from positions alone where they were kept.
  bool carries_states() const;

  // Whether the memory budget can ever hold so many tokens of one session, what
  // can be mapped from the prompt cache not counted.
  bool CanHold(int n_tokens) const;
  SaveReport Saves() const;
  // Bytes of files in the prompt cache directory, as its budget counts them;
  // none without a directory.
  std::optional<std::uint64_t> StoredBytes() const;

  // Without the concat reference, whose sessions have nothing in common.
  KvMemory MemoryInUse() const;

  // Waits until everything handed to the prompt cache is durable, `seconds_max`
  // at most (0: as long as it takes). The first error of a save since the last
  // call, if there was one; kCancelled, saying what is lost, when the time was
  // too short: then nothing is saved any more.
  Result<void> DrainSaves(double seconds_max = 0);

 private:
  friend struct EngineAccess;
  explicit Engine(std::shared_ptr<EngineCore> core);
  const std::shared_ptr<EngineCore> core_;
  std::unique_ptr<TextCodec> codec_;
  ModelInfo info_;
};

// What Begin and Generate of a model with so many ids refuse, kInvalidArgument.
Result<void> CheckGenerate(const GenerateOptions& options, int vocab_size);

// Description of a model file without opening a tokenizer or a cache.
Result<ModelInfo> InspectModel(const std::string& path);

}  // namespace hearth
