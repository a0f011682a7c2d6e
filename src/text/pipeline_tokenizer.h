// The tokenizer behind every vocabulary but bytes: added tokens out, text
// normalized, split into words, words merged into pieces, ids around it.
//
// tokenizer.json, GGUF and the compiled form all end in a TokenizerSpec; this
// class runs it.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "base/mutex.h"
#include "hearth/result.h"
#include "text/added_tokens.h"
#include "text/bpe/bpe.h"
#include "text/decoder.h"
#include "text/split/pre_tokenizer.h"
#include "text/step.h"
#include "text/tokenizer.h"
#include "text/unicode/normalizer.h"

namespace hearth {

// All of a tokenizer as data.
struct TokenizerSpec {
  std::string kind;  // for people
  Bpe bpe;
  std::vector<Step> normalizers, splits, decoders;
  std::vector<AddedToken> added;            // at most one for each id
  std::vector<std::int32_t> before, after;  // ids around the text
  std::optional<std::int32_t> bos, eos;
  std::vector<std::int32_t> ends;  // ascending, without repeats
};

class PipelineTokenizer final : public Tokenizer {
 public:
  // kCorrupt when an id of `spec` is outside its vocabulary; errors of the
  // parts. `backing` is kept alive for arrays that are views (may be null).
  static Result<std::unique_ptr<PipelineTokenizer>> Make(
      TokenizerSpec spec, const std::string& what,
      std::shared_ptr<const void> backing = nullptr);

  std::string_view kind() const override { return spec_.kind; }
  Result<std::vector<std::int32_t>> Encode(
      std::string_view text, EncodeOptions options) const override;
  std::int32_t vocab_size() const override {
    return static_cast<std::int32_t>(spec_.bpe.vocab.size());
  }
  std::optional<std::int32_t> bos_id() const override { return spec_.bos; }
  std::optional<std::int32_t> eos_id() const override { return spec_.eos; }
  std::span<const std::int32_t> end_ids() const override { return spec_.ends; }
  void AddEnds(std::span<const std::int32_t> ids) override;
  bool IsSpecial(std::int32_t id) const override;
  std::string Piece(std::int32_t id) const override;
  std::optional<std::int32_t> FindPiece(std::string_view piece) const override;
  void AppendBytes(std::int32_t id, bool at_start,
                   std::string& out) const override;
  Digest Fingerprint() const override;

  const TokenizerSpec* spec() const override { return &spec_; }
  // The compiled form brings its fingerprint along.
  void SetFingerprint(const Digest& digest) const;

 private:
  struct Scratch {
    BpeScratch bpe;
    SplitScratch split;
    std::vector<TextSpan> spans, inner_spans;
    std::string normalized, word;
  };
  class Lease;

  PipelineTokenizer() = default;
  Result<void> EncodePlain(std::string_view text, bool at_start,
                           EncodeOptions options, Scratch& scratch,
                           std::vector<std::int32_t>& out) const;
  Result<void> EncodeWords(std::string_view text, bool at_start,
                           Scratch& scratch,
                           std::vector<std::int32_t>& out) const;
  void EncodeCut(std::string_view piece, Scratch& scratch,
                 std::vector<std::int32_t>& out) const;
  bool WordsBreakBeforeMark() const;

  TokenizerSpec spec_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  Decoder decoder_;
  AddedTokenFinder raw_added_, normalized_added_;
  // Added tokens that take the blank before them along, as they are decoded.
  std::unordered_map<std::int32_t, std::string> with_blank_;
  bool pieces_are_spelled_ = false;
  // No piece goes on past a "▁" that follows another character, so text may be
  // cut there without changing its ids (and words become short and cacheable).
  bool cut_before_mark_ = false;
  std::shared_ptr<const void> backing_;

  mutable Mutex mutex_;
  mutable std::vector<std::unique_ptr<Scratch>> idle_ HEARTH_GUARDED_BY(mutex_);
  mutable std::optional<Digest> fingerprint_ HEARTH_GUARDED_BY(mutex_);
};

}  // namespace hearth
