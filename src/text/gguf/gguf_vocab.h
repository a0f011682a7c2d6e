// The tokenizer of a GGUF file, from its metadata. The model loader reads the
// file and fills in a GgufVocab; this room knows nothing of files.
//
// Kinds   "llama"  sentencepiece-style BPE: pieces with scores, byte fallback
//         "gpt2"   byte-level BPE with a named pre-tokenizer (`pre`)
//         "gemma4" BPE over whole characters, byte fallback, ranked merges
//         Any other kind and any unknown `pre` is kUnsupported, by name.
// Errors  kCorrupt, naming the metadata key, when arrays disagree or an id is
//         outside the vocabulary.
// Source  the conventions are llama.cpp's (tokenizer.ggml.* keys).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/result.h"
#include "text/tokenizer.h"

namespace hearth {

// Values of tokenizer.ggml.token_type.
enum class GgufTokenType : std::int32_t {
  kNormal = 1,
  kUnknown = 2,
  kControl = 3,
  kUserDefined = 4,
  kUnused = 5,
  kByte = 6,
};

// The views need to live only until MakeGgufTokenizer returns. A member that
// the file lacks stays empty; defaults by kind are filled in then.
struct GgufVocab {
  std::string what;          // names the source in messages: the file's path
  std::string model;         // tokenizer.ggml.model
  std::string pre;           // tokenizer.ggml.pre; empty: the oldest pattern
  std::string general_name;  // general.name; a few models need it
  std::vector<std::string_view> tokens;   // tokenizer.ggml.tokens
  std::vector<float> scores;              // tokenizer.ggml.scores
  std::vector<std::int32_t> token_types;  // tokenizer.ggml.token_type
  std::vector<std::string_view> merges;   // tokenizer.ggml.merges, "a b"
  bool merges_given = false;  // the key is there; the list may be empty
  std::optional<std::int32_t> bos, eos, unk, pad;  // *_token_id
  std::optional<bool> add_bos;           // tokenizer.ggml.add_bos_token
  std::optional<bool> add_eos;           // tokenizer.ggml.add_eos_token
  std::optional<bool> add_space_prefix;  // tokenizer.ggml.add_space_prefix
  // tokenizer.ggml.remove_extra_whitespaces and .precompiled_charsmap: only the
  // unigram kind has them, which is refused.
  std::optional<bool> remove_extra_whitespaces;
  std::string_view precompiled_charsmap;
  // hearth.tokenizer: text/gguf/gguf_pipeline.h. Empty: not there.
  std::string_view pipeline;
};

// Whether the vocabulary of a model of this name drops white space after the
// token. Phi-3's chat template relies on that, and GGUF has no key for it.
bool DropsSpaceAfter(std::string_view general_name, std::string_view token);

Result<std::unique_ptr<Tokenizer>> MakeGgufTokenizer(const GgufVocab& vocab);

}  // namespace hearth
