#include "text/pipeline_tokenizer.h"

#include <simdjson.h>

#include <algorithm>

#include "text/fingerprint.h"
#include "text/unicode/byte_alphabet.h"

namespace hearth {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";  // "▁", a space in pieces
constexpr std::size_t kIdleMax = 4;

// The text that a normalizer puts in front of everything, when `rewritten`
// begins with it. A normalized token is then found with the mark of the blank
// before it ("\xE2\x96\x81<tool>"), takes that along, and must give it back.
std::string_view BlankTaken(const std::vector<Step>& normalizers,
                            std::string_view rewritten) {
  for (const Step& step : normalizers) {
    if (step.kind == StepKind::kPrepend && rewritten.starts_with(step.text)) {
      return step.text;
    }
  }
  return {};
}

}  // namespace

// Lends a scratch to one Encode; several threads get several.
class PipelineTokenizer::Lease {
 public:
  explicit Lease(const PipelineTokenizer& owner) : owner_(owner) {
    const MutexLock lock(owner_.mutex_);
    if (owner_.idle_.empty()) {
      scratch_ = std::make_unique<Scratch>();
    } else {
      scratch_ = std::move(owner_.idle_.back());
      owner_.idle_.pop_back();
    }
  }
  ~Lease() {
    Trim();
    const MutexLock lock(owner_.mutex_);
    if (owner_.idle_.size() < kIdleMax) {
      owner_.idle_.push_back(std::move(scratch_));
    }
  }
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Scratch& operator*() { return *scratch_; }

 private:
  // After a very long text: gives its memory back, keeps the word cache.
  void Trim() {
    constexpr std::size_t kKeep = 1 << 16;
    Scratch& s = *scratch_;
    if (s.bpe.ids.capacity() > kKeep) {
      WordCache cache = std::move(s.bpe.cache);
      s.bpe = BpeScratch{};
      s.bpe.cache = std::move(cache);
    }
    s.split.storage.clear();
    if (s.split.pieces.capacity() > kKeep ||
        s.split.others.capacity() > kKeep) {
      s.split.pieces = {};
      s.split.others = {};
    }
    if (s.normalized.capacity() > kKeep * 16) s.normalized = std::string();
  }

  const PipelineTokenizer& owner_;
  std::unique_ptr<Scratch> scratch_;
};

Result<std::unique_ptr<PipelineTokenizer>> PipelineTokenizer::Make(
    TokenizerSpec spec, const std::string& what,
    std::shared_ptr<const void> backing) {
  const auto size = static_cast<std::int64_t>(spec.bpe.vocab.size());
  const auto outside = [size](std::int32_t id) { return id < 0 || id >= size; };
  const auto check = [&](const char* name, std::int32_t id) -> Result<void> {
    if (!outside(id)) return {};
    return {Code::kCorrupt, what + ": " + name + " id " + std::to_string(id) +
                                " is outside the vocabulary of " +
                                std::to_string(size)};
  };
  if (spec.bos) HEARTH_TRY(check("bos", *spec.bos));
  if (spec.eos) HEARTH_TRY(check("eos", *spec.eos));
  if (spec.bpe.unk_id != kNoId) {
    HEARTH_TRY(check("unknown", static_cast<std::int32_t>(spec.bpe.unk_id)));
  }
  for (const auto& token : spec.added) {
    HEARTH_TRY(check("added token", token.id));
  }
  for (const auto id : spec.before) HEARTH_TRY(check("template", id));
  for (const auto id : spec.after) HEARTH_TRY(check("template", id));
  for (const auto id : spec.ends) HEARTH_TRY(check("end token", id));

  std::unique_ptr<PipelineTokenizer> made(new PipelineTokenizer);
  HEARTH_ASSIGN(made->normalizer_, Normalizer::Make(spec.normalizers, what));
  HEARTH_ASSIGN(made->pre_tokenizer_, PreTokenizer::Make(spec.splits, what));
  HEARTH_ASSIGN(made->decoder_, Decoder::Make(spec.decoders, what));
  made->pieces_are_spelled_ = made->pre_tokenizer_.spells_bytes();
  for (const Step& step : spec.normalizers) {
    made->pieces_are_spelled_ |= step.kind == StepKind::kSpellBytes;
  }
  std::vector<std::string> raw, normalized;
  RegexScratch regex;
  for (const AddedToken& token : spec.added) {
    std::string storage;
    std::string_view rewritten = token.content;
    if (token.normalized) {
      HEARTH_ASSIGN(rewritten,
                    made->normalizer_.Apply(token.content, storage, regex));
    }
    const std::string_view blank = BlankTaken(spec.normalizers, rewritten);
    if (token.normalized && !blank.empty() &&
        !token.content.starts_with(blank)) {
      made->with_blank_.emplace(token.id, std::string(blank) + token.content);
    }
    raw.push_back(token.normalized ? std::string() : token.content);
    normalized.emplace_back(token.normalized ? rewritten : std::string_view());
  }
  HEARTH_ASSIGN(made->raw_added_,
                AddedTokenFinder::Make(spec.added, raw, what));
  HEARTH_ASSIGN(made->normalized_added_,
                AddedTokenFinder::Make(spec.added, normalized, what));
  made->spec_ = std::move(spec);
  made->backing_ = std::move(backing);
  made->cut_before_mark_ = made->WordsBreakBeforeMark();
  return made;
}

bool PipelineTokenizer::WordsBreakBeforeMark() const {
  const Bpe& bpe = spec_.bpe;
  if (bpe.bytes || bpe.ignore_merges || !bpe.later_prefix.empty() ||
      !bpe.last_suffix.empty() || bpe.vocab.Find(kMark) == kNoId) {
    return false;
  }
  for (std::uint32_t id = 0; id < bpe.vocab.size(); ++id) {
    if ((bpe.vocab.flags[id] & kPieceFindable) == 0) continue;
    std::string_view piece = bpe.vocab.Text(id);
    while (piece.starts_with(kMark)) piece.remove_prefix(kMark.size());
    if (piece.find(kMark) != std::string_view::npos) return false;
  }
  return true;
}

Result<std::vector<std::int32_t>> PipelineTokenizer::Encode(
    std::string_view text, EncodeOptions options) const {
  std::string clean;
  if (!simdjson::validate_utf8(text.data(), text.size())) {
    clean = ReplaceInvalidUtf8(text);
    text = clean;
  }
  Lease lease(*this);
  Scratch& scratch = *lease;
  scratch.bpe.cache.SizeFor(text.size());
  std::vector<std::int32_t> out;
  out.reserve(text.size() / 4 + 16);
  if (options.add_special) out = spec_.before;
  scratch.spans.clear();
  raw_added_.Find(text, options.parse_special, scratch.spans);
  for (const TextSpan& span : scratch.spans) {
    if (span.id != kPlainText) {
      out.push_back(span.id);
      continue;
    }
    HEARTH_TRY(EncodePlain(text.substr(span.start, span.end - span.start),
                           /*at_start=*/span.start == 0, options, scratch,
                           out));
  }
  if (options.add_special) {
    out.insert(out.end(), spec_.after.begin(), spec_.after.end());
  }
  return out;
}

Result<void> PipelineTokenizer::EncodePlain(
    std::string_view text, bool at_start, EncodeOptions options,
    Scratch& scratch, std::vector<std::int32_t>& out) const {
  HEARTH_ASSIGN(
      text, normalizer_.Apply(text, scratch.normalized, scratch.split.regex));
  if (normalized_added_.empty()) {
    return EncodeWords(text, at_start, scratch, out);
  }
  scratch.inner_spans.clear();
  normalized_added_.Find(text, options.parse_special, scratch.inner_spans);
  for (const TextSpan& span : scratch.inner_spans) {
    if (span.id != kPlainText) {
      out.push_back(span.id);
      continue;
    }
    HEARTH_TRY(EncodeWords(text.substr(span.start, span.end - span.start),
                           at_start && span.start == 0, scratch, out));
  }
  return {};
}

Result<void> PipelineTokenizer::EncodeWords(
    std::string_view text, bool at_start, Scratch& scratch,
    std::vector<std::int32_t>& out) const {
  const Bpe& bpe = spec_.bpe;
  if (const auto pattern = pre_tokenizer_.only_pattern();
      pattern && !pieces_are_spelled_ && !cut_before_mark_) {
    for (std::size_t i = 0; i < text.size();) {
      const std::size_t end = NextPiece(*pattern, text, i);
      bpe.EncodeWord(text.substr(i, end - i), scratch.bpe, out);
      i = end;
    }
    return {};
  }
  HEARTH_TRY(pre_tokenizer_.Split(text, at_start, scratch.split));
  for (std::string_view piece : scratch.split.pieces) {
    if (pieces_are_spelled_) {
      scratch.word.clear();
      AppendUnspelled(scratch.word, piece);
      piece = scratch.word;
    }
    if (cut_before_mark_) {
      EncodeCut(piece, scratch, out);
    } else {
      bpe.EncodeWord(piece, scratch.bpe, out);
    }
  }
  return {};
}

void PipelineTokenizer::EncodeCut(std::string_view piece, Scratch& scratch,
                                  std::vector<std::int32_t>& out) const {
  std::size_t start = 0;
  while (start < piece.size()) {
    std::size_t i = start;
    while (piece.substr(i).starts_with(kMark)) i += kMark.size();
    const std::size_t end = std::min(piece.find(kMark, i), piece.size());
    spec_.bpe.EncodeWord(piece.substr(start, end - start), scratch.bpe, out);
    start = end;
  }
}

void PipelineTokenizer::AddEnds(std::span<const std::int32_t> ids) {
  for (const std::int32_t id : ids) {
    if (id >= 0 && id < vocab_size()) spec_.ends.push_back(id);
  }
  std::sort(spec_.ends.begin(), spec_.ends.end());
  spec_.ends.erase(std::unique(spec_.ends.begin(), spec_.ends.end()),
                   spec_.ends.end());
}

bool PipelineTokenizer::IsSpecial(std::int32_t id) const {
  return id >= 0 && id < vocab_size() &&
         (spec_.bpe.vocab.flags[static_cast<std::size_t>(id)] &
          kPieceSpecial) != 0;
}

std::string PipelineTokenizer::Piece(std::int32_t id) const {
  if (id < 0 || id >= vocab_size()) return {};
  const Vocab& vocab = spec_.bpe.vocab;
  const auto index = static_cast<std::uint32_t>(id);
  if ((vocab.flags[index] & kPieceRawBytes) == 0) {
    return std::string(vocab.Text(index));
  }
  std::string spelling;
  AppendSpelled(spelling, vocab.Text(index));
  return spelling;
}

std::optional<std::int32_t> PipelineTokenizer::FindPiece(
    std::string_view piece) const {
  for (const AddedToken& token : spec_.added) {
    if (token.content == piece) return token.id;
  }
  std::string text(piece);
  if (spec_.bpe.bytes) {
    text.clear();
    if (!AppendUnspelled(text, piece)) return std::nullopt;
  }
  const std::uint32_t id = spec_.bpe.vocab.Find(text);
  if (id == kNoId) return std::nullopt;
  return static_cast<std::int32_t>(id);
}

void PipelineTokenizer::AppendBytes(std::int32_t id, bool at_start,
                                    std::string& out) const {
  if (id < 0 || id >= vocab_size()) return;
  if (const auto it = with_blank_.find(id); it != with_blank_.end()) {
    decoder_.AppendText(it->second, at_start, out);
    return;
  }
  decoder_.Append(spec_.bpe.vocab, static_cast<std::uint32_t>(id), at_start,
                  out);
}

Digest PipelineTokenizer::Fingerprint() const {
  const MutexLock lock(mutex_);
  if (!fingerprint_) fingerprint_ = FingerprintOf(spec_);
  return *fingerprint_;
}

void PipelineTokenizer::SetFingerprint(const Digest& digest) const {
  const MutexLock lock(mutex_);
  fingerprint_ = digest;
}

}  // namespace hearth
