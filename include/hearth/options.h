// What a caller can choose, with the defaults and limits in one place.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/constraint.h"
#include "hearth/sampling_defaults.h"

namespace hearth {

// Storage of cached keys and values. int8 and int4 (KIVI) apply to full blocks:
// keys have a scale and a zero per channel, values per token; the newest
// tokens, up to a block, stay in fp32.
enum class KvStorage : std::uint8_t { kFp32, kFp16, kBf16, kInt8, kInt4 };
enum class KvGrowth : std::uint8_t {
  kInPlace,  // reserved address space, nothing is ever copied
  kConcat    // the reference: a new buffer and a copy at every append
};

// Where the forward pass runs.
enum class DeviceChoice : std::uint8_t {
  kAuto,  // an NVIDIA card that can, else the CPU
  kCpu,
  kCuda,  // an NVIDIA card; an engine that cannot have it does not open
};
std::string_view NameOf(DeviceChoice device);
std::optional<DeviceChoice> DeviceChoiceNamed(std::string_view name);

// Precision that RoPE's inverse frequencies are rounded to before use. Models
// are trained with exact ones. Some reference implementations round them when
// they cast a whole model to 16 bits; this reproduces such a reference.
enum class RopeRounding : std::uint8_t { kExact, kBf16, kFp16 };
std::optional<RopeRounding> RopeRoundingNamed(std::string_view name);

std::string_view NameOf(KvStorage storage);
std::optional<KvStorage> KvStorageNamed(std::string_view name);

// A LoRA adapter: a GGUF file or a PEFT directory (docs/lora.md).
struct AdapterChoice {
  std::string path;
  float scale = 1;  // of everything that it adds; not 0
};
// From "FILE" or "FILE=scale"; the last '=' counts, where a number follows.
AdapterChoice AdapterChoiceOf(std::string_view text);

struct EngineOptions {
  std::string model_path = {};  // empty: the model inside the program
  int n_threads = 0;            // 0: the processors this process may use
  int n_threads_prefill = 0;    // for prompts; 0: n_threads
  int prefill_step_tokens = 0;  // prompt tokens a forward step; 0: 256

  // Beside the model's weights. Their order is without effect.
  std::vector<AdapterChoice> adapters = {};

  DeviceChoice device = DeviceChoice::kCpu;
  // Memory of the card for weights, keys and values together; 0: what is free.
  std::uint64_t gpu_memory_bytes = 0;

  KvStorage kv_storage = KvStorage::kFp32;
  std::optional<KvStorage> kv_keys = {},
                           kv_values = {};  // of one of the two, if set
  KvGrowth kv_growth = KvGrowth::kInPlace;
  bool kv_preallocate = false;  // fault the whole context in at the start
  int context_tokens = 0;       // 0: the model's trained context
  // Memory that the KV of all sessions may take, mapped blocks not counted; 0:
  // no limit.
  std::uint64_t kv_ram_budget_bytes = 0;
  int block_tokens = 64;  // 16..1024, a multiple of 16

  // StreamingLLM: attention sees the first streaming_sink tokens and the newest
  // streaming_window; what lies between is let go of, and generation may go on
  // beyond the trained context. 0 window: off. Rotary models only.
  int streaming_sink = 0;
  int streaming_window = 0;

  RopeRounding rope_rounding = RopeRounding::kExact;

  // Speculative decoding: "prompt-lookup", "mtp" (the model's own block for
  // it), the path of a smaller model with the same vocabulary, or of a .heads
  // file. Empty: none.
  std::string draft = {};
  int draft_tokens = 8;  // guesses in one step at most: 1..64

  // Reads all weights to see that they are what the prompt cache knows them as,
  // instead of trusting size and times of the files.
  bool verify_model = false;

  // The persistent prompt cache; the file wins when both are set.
  std::string prompt_cache_dir = {};
  std::string prompt_cache_file = {};
  std::string cache_namespace = {};
  std::uint64_t cache_disk_budget_bytes = 0;   // of the directory; 0: no limit
  std::uint64_t cache_free_reserve_bytes = 0;  // of the disk, left for others
  // A Redis server that machines share, behind the directory:
  // redis://[[user]:password@]host[:port][/db], rediss:// for TLS; empty: none.
  std::string cache_remote = {};
  int cache_remote_deadline_ms = 1000;  // what one lookup may wait for it
  // What comes from that server counts only with a MAC under this file's key
  // (32 bytes), which its machines share, or encrypted under cache_key_file.
  // Without either it is refused, unless `cache_remote_trusted` says that
  // whoever can write to it may change this machine's answers.
  std::string cache_remote_key_file = {};
  bool cache_remote_trusted = false;
  std::string cache_key_file = {};  // encrypts what is stored; 32 bytes
  bool cache_verify = true;     // checksums before use; false trusts the disk
  bool cache_previews = false;  // the prompt's beginning in the sidecar
  bool cache_always = false;    // load what is stored even where computing it
                                // is predicted to be faster
  bool cache_by_text = false;   // Engine::PreferStoredIds looks for the text
};

// How the next token is picked. In this order:
//
//   constraint  what GenerateOptions::constraint forbids is out; the last word
//   bias        added to the logits; suppressed ids are out
//   penalties   on tokens of the prompt and the answer: repeat, then frequency
//               and presence, then DRY
//   filters     temperature, top-k, top-p, min-p, then XTC
//   draw        greedy (temperature 0): the first largest logit, nothing drawn
//
// Order and meaning are llama.cpp's but for three things: temperature comes
// before the filters, not behind them; XTC does nothing when greedy; a
// constraint holds from the start, and is not tried after the draw.
//
// The same options, seed and logits give the same tokens, on every platform.
// Guesses ahead change nothing: what a guess must pass is all of this.
struct SamplingOptions {
  double temperature = 0.8;  // 0: greedy
  int top_k = 0;             // 0: off
  double top_p = 1.0;        // 1: off
  double min_p = 0.0;        // 0: off
  std::uint64_t seed = 0;

  // What is added to the logit of an id; minus infinity as suppressed_ids.
  std::map<std::int32_t, double> logit_bias = {};
  // Never sampled, but where a constraint leaves nothing else.
  std::vector<std::int32_t> suppressed_ids = {};

  // Of ids among the newest repeat_last_n tokens (-1: all, 0: none), c times
  // each: positive logits are divided by repeat_penalty, others multiplied by
  // it (Keskar et al. 2019, "CTRL"), then c * frequency_penalty and
  // presence_penalty are subtracted (OpenAI's API, whose window is the answer).
  double repeat_penalty = 1.0;  // 1: off
  int repeat_last_n = 64;
  double presence_penalty = 0, frequency_penalty = 0;  // 0: off

  // DRY, "don't repeat yourself" (p-e-w, text-generation-webui #5677). When the
  // newest n >= dry_allowed_length tokens stood before among the newest
  // dry_penalty_last_n (-1: all, 0: none), the logit of what followed them
  // there loses dry_multiplier * dry_base^(n - dry_allowed_length). A
  // repetition does not reach across a breaker: tokens behind it count alone.
  double dry_multiplier = 0;  // 0: off
  double dry_base = 1.75;
  int dry_allowed_length = 2;
  int dry_penalty_last_n = -1;
  std::vector<std::string> dry_sequence_breakers = {"\n", ":", "\"", "*"};

  // XTC, "exclude top choices" (p-e-w, text-generation-webui #6335): with
  // xtc_probability, of the tokens that have xtc_threshold of the probability
  // or more, all but the least likely are out.
  double xtc_probability = 0;  // 0: off
  double xtc_threshold = 0.1;  // above 0.5: off
};

// What a model's files recommend; where they say nothing: temperature 0.8,
// top-k 40, top-p 0.95, min-p 0.05. A repetition penalty without a window looks
// at all tokens, as it does in transformers.
SamplingOptions DefaultSampling(const SamplingDefaults& model);

struct GenerateOptions {
  int n_tokens_max = 200;
  bool ignore_eos = false;
  bool speculate = true;  // when the engine has EngineOptions::draft
  // Each ends the answer and is not part of it; the first to be complete
  // counts.
  std::vector<std::string> stop_texts = {};
  // Token::logprob, and in Token::top the most probable tokens, so many.
  bool logprobs = false;
  int top_logprobs = 0;
  SamplingOptions sampling = {};
  // Made anew for each answer; empty: the answer is free. When it lets nothing
  // come any more the answer is over: StopReason::kEndOfText without an end_id.
  MakeConstraint constraint = {};
};

}  // namespace hearth
