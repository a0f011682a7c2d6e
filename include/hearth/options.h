// What a caller can choose, with the defaults and limits in one place.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth {

// Storage of cached keys and values. int8 and int4 (KIVI) apply to full blocks:
// keys have a scale and a zero per channel, values per token; the newest
// tokens, up to a block, stay in fp32.
enum class KvStorage : std::uint8_t { kFp32, kFp16, kBf16, kInt8, kInt4 };
enum class KvGrowth : std::uint8_t {
  kInPlace,  // reserved address space, nothing is ever copied
  kConcat    // the reference: a new buffer and a copy at every append
};

// Precision that RoPE's inverse frequencies are rounded to before use. Models
// are trained with exact ones. Some reference implementations round them when
// they cast a whole model to 16 bits; this reproduces such a reference.
enum class RopeRounding : std::uint8_t { kExact, kBf16, kFp16 };
std::optional<RopeRounding> RopeRoundingNamed(std::string_view name);

std::string_view NameOf(KvStorage storage);
std::optional<KvStorage> KvStorageNamed(std::string_view name);

struct EngineOptions {
  std::string model_path = {};  // empty: the model inside the program
  int n_threads = 0;            // 0: the processors this process may use
  int n_threads_prefill = 0;    // for prompts; 0: n_threads
  int prefill_step_tokens = 0;  // prompt tokens a forward step; 0: 256

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

  // Speculative decoding: "prompt-lookup", the path of a smaller model with the
  // same vocabulary, or of a .heads file. Empty: none.
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

struct SamplingOptions {
  double temperature = 0.8;  // 0: greedy
  int top_k = 0;             // 0: off
  double top_p = 1.0;        // 1: off
  double min_p = 0.0;        // 0: off
  std::uint64_t seed = 0;
};

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
};

}  // namespace hearth
