// Text to token ids and back.
//
// A Tokenizer never changes after it is made; every method may be called from
// several threads at once. A StreamDecoder belongs to one thread.
//
// Text    UTF-8. Encode replaces invalid parts by U+FFFD first (see utf8.h);
//         only the ByteTokenizer takes bytes as they are.
// Errors  Encode: kResourceFull when a split pattern exceeds its step limit,
//         kInvalidArgument when the text holds a character that the vocabulary
//         cannot express at all. Decoding never fails: an id outside the
//         vocabulary gives no text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "hearth/result.h"
#include "text/unicode/utf8.h"

namespace hearth {

struct EncodeOptions {
  // Put the ids around the text that the model expects (BOS, template).
  bool add_special = true;
  // Turn the spelling of a special token inside the text into its id. Leave it
  // off for text from people. Added tokens that are not special always match.
  bool parse_special = true;
};

struct TokenizerSpec;

class Tokenizer {
 public:
  virtual ~Tokenizer() = default;

  // All of it as data; null for one that is code alone (bytes).
  virtual const TokenizerSpec* spec() const { return nullptr; }

  // A short name of the kind, for people: "bytes", "byte-level BPE", ...
  virtual std::string_view kind() const = 0;

  virtual Result<std::vector<std::int32_t>> Encode(
      std::string_view text, EncodeOptions options = {}) const = 0;

  // Ids are 0..vocab_size()-1; some of them may have no piece.
  virtual std::int32_t vocab_size() const = 0;
  virtual std::optional<std::int32_t> bos_id() const = 0;
  virtual std::optional<std::int32_t> eos_id() const = 0;
  // Every id after which an answer is over, ascending. Holds eos_id().
  virtual std::span<const std::int32_t> end_ids() const = 0;
  bool IsEnd(std::int32_t id) const;
  // More of them, which the model's configuration names; ids outside the
  // vocabulary are left out. Before the tokenizer is shared: the one change
  // that it may see.
  virtual void AddEnds(std::span<const std::int32_t> ids) = 0;

  // True for control tokens: BOS, turn markers and their kind.
  virtual bool IsSpecial(std::int32_t id) const = 0;
  // The vocabulary's own spelling ("Ġthe", "▁the", "<0x0A>"), empty when the
  // id has none.
  virtual std::string Piece(std::int32_t id) const = 0;
  // The id of an exact spelling, as Piece gives it.
  virtual std::optional<std::int32_t> FindPiece(
      std::string_view piece) const = 0;

  // Appends the bytes that `id` stands for in running text; maybe a part of a
  // character. `at_start`: it is the first of its text (some vocabularies drop
  // the first space). A special token gives its spelling.
  virtual void AppendBytes(std::int32_t id, bool at_start,
                           std::string& out) const = 0;
  std::string TokenBytes(std::int32_t id) const;

  // The whole text, valid UTF-8. Equals what a StreamDecoder gives in pieces.
  std::string Decode(std::span<const std::int32_t> ids,
                     bool skip_special = false) const;

  // SHA-256 over everything that decides which ids a text gets. Computed at the
  // first call (a few milliseconds for a large vocabulary).
  virtual Digest Fingerprint() const = 0;
};

// Turns ids into text as they come. Push gives whole characters only.
class StreamDecoder {
 public:
  // `tokenizer` outlives the decoder. `at_start` false: the ids go on after a
  // prompt, so the first one keeps its leading space.
  explicit StreamDecoder(const Tokenizer& tokenizer, bool skip_special = true,
                         bool at_start = true)
      : tokenizer_(&tokenizer),
        skip_special_(skip_special),
        at_start_(at_start) {}

  std::string Push(std::int32_t id);
  // The end: what still waits, as U+FFFD.
  std::string Flush() { return stream_.Flush(); }

 private:
  const Tokenizer* tokenizer_;
  bool skip_special_;
  bool at_start_;
  std::string bytes_;
  Utf8Stream stream_;
};

// Id = byte. 256 ids, no special ones; decodes to U+FFFD where the bytes are
// not UTF-8.
std::unique_ptr<Tokenizer> MakeByteTokenizer();

}  // namespace hearth
