#include <algorithm>
#include <bit>
#include <cctype>
#include <cmath>

#include "text/bpe/merge_reader.h"
#include "text/end_tokens.h"
#include "text/gguf/gguf_pipeline.h"
#include "text/gguf/gguf_pre.h"
#include "text/gguf/gguf_vocab.h"
#include "text/pipeline_tokenizer.h"
#include "text/unicode/byte_alphabet.h"

namespace hearth {
namespace {

constexpr std::string_view kMark = "\xE2\x96\x81";

Error Bad(const GgufVocab& vocab, const std::string& fault) {
  return {Code::kCorrupt, vocab.what + ": tokenizer.ggml." + fault};
}

GgufTokenType TypeOf(const GgufVocab& vocab, std::size_t id) {
  return vocab.token_types.empty()
             ? GgufTokenType::kNormal
             : static_cast<GgufTokenType>(vocab.token_types[id]);
}

// A larger score is a smaller number, so that the smallest merges first.
std::uint32_t PriorityOfScore(float score) {
  const auto bits = std::bit_cast<std::uint32_t>(score);
  const std::uint32_t ascending =
      (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
  return ~ascending;
}

std::string LowerAscii(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return text;
}

Result<void> CheckSizes(const GgufVocab& vocab) {
  const std::size_t n = vocab.tokens.size();
  if (n == 0) return Bad(vocab, "tokens is missing or empty");
  if (n > INT32_MAX / 2) return Bad(vocab, "tokens is too long");
  if (!vocab.token_types.empty() && vocab.token_types.size() != n) {
    return Bad(vocab, "token_type has " +
                          std::to_string(vocab.token_types.size()) +
                          " entries for " + std::to_string(n) + " tokens");
  }
  if (!vocab.scores.empty() && vocab.scores.size() != n) {
    return Bad(vocab, "scores has " + std::to_string(vocab.scores.size()) +
                          " entries for " + std::to_string(n) + " tokens");
  }
  return {};
}

std::uint8_t PlainFlags(GgufTokenType type) {
  switch (type) {
    case GgufTokenType::kControl:
      return kPiecePresent | kPieceSpecial | kPieceLiteral;
    case GgufTokenType::kUnknown:
      return kPiecePresent | kPieceSpecial | kPieceLiteral;
    default:
      return kPiecePresent;
  }
}

// Some writers give the end tokens of chats the type of plain pieces, and their
// models would be prompted in pieces and never stop. They are control tokens
// whatever the file says. Empty: all pieces are plain.
std::vector<std::int32_t> CorrectedTypes(const GgufVocab& vocab) {
  std::vector<std::int32_t> types = vocab.token_types;
  for (std::size_t id = 0; id < vocab.tokens.size(); ++id) {
    if (!EndsAnswers(vocab.tokens[id])) continue;
    types.resize(vocab.tokens.size(),
                 static_cast<std::int32_t>(GgufTokenType::kNormal));
    types[id] = static_cast<std::int32_t>(GgufTokenType::kControl);
  }
  return types;
}

// Control, unknown and user-defined pieces are looked for in the text itself.
void CollectAdded(const GgufVocab& vocab, TokenizerSpec& spec) {
  for (std::size_t id = 0; id < vocab.tokens.size(); ++id) {
    const GgufTokenType type = TypeOf(vocab, id);
    const bool control =
        type == GgufTokenType::kControl || type == GgufTokenType::kUnknown;
    if (!control && type != GgufTokenType::kUserDefined) continue;
    AddedToken token;
    token.id = static_cast<std::int32_t>(id);
    token.content = std::string(vocab.tokens[id]);
    token.special = control;
    token.rstrip = DropsSpaceAfter(vocab.general_name, token.content);
    spec.added.push_back(std::move(token));
  }
}

void AddSurrounding(const GgufVocab& vocab, bool bos_default,
                    TokenizerSpec& spec) {
  if (vocab.add_bos.value_or(bos_default) && spec.bos) {
    spec.before.push_back(*spec.bos);
  }
  if (vocab.add_eos.value_or(false) && spec.eos) {
    spec.after.push_back(*spec.eos);
  }
}

Result<void> ReadSentencePiece(const GgufVocab& vocab, TokenizerSpec& spec) {
  if (vocab.scores.empty()) return Bad(vocab, "scores is missing");
  std::size_t text_bytes = 0;
  for (const std::string_view token : vocab.tokens) text_bytes += token.size();
  VocabBuilder builder(vocab.tokens.size(), text_bytes);
  std::vector<std::uint32_t> priority(vocab.tokens.size());
  for (std::size_t id = 0; id < vocab.tokens.size(); ++id) {
    const GgufTokenType type = TypeOf(vocab, id);
    const float score = vocab.scores[id];
    if (std::isnan(score)) {
      return Bad(vocab, "scores[" + std::to_string(id) + "] is not a number");
    }
    priority[id] = PriorityOfScore(score);
    unsigned flags = PlainFlags(type);
    if (type == GgufTokenType::kByte) {
      flags |= kPieceByte;
    } else if ((flags & kPieceSpecial) == 0) {
      flags |= kPieceFindable;
    }
    builder.Add(vocab.tokens[id], static_cast<std::uint8_t>(flags));
  }
  Bpe& bpe = spec.bpe;
  HEARTH_ASSIGN(bpe.vocab, builder.Finish(vocab.what));
  bpe.vocab.priority = FlatArray<std::uint32_t>(std::move(priority));
  bpe.by_score = true;
  bpe.byte_fallback = true;
  spec.bos = vocab.bos ? vocab.bos : std::optional<std::int32_t>(1);
  spec.eos = vocab.eos ? vocab.eos : std::optional<std::int32_t>(2);
  const std::int32_t unk = vocab.unk.value_or(0);
  if (unk >= 0) bpe.unk_id = static_cast<std::uint32_t>(unk);
  const std::string mark(kMark);
  if (vocab.add_space_prefix.value_or(true)) {
    spec.normalizers.push_back({StepKind::kPrepend, 0, 0, mark, {}});
  }
  spec.normalizers.push_back({StepKind::kReplaceText, 0, 0, " ", mark});
  spec.decoders.push_back({StepKind::kReplaceText, 0, 0, mark, " "});
  spec.decoders.push_back({StepKind::kDecodeByteFallback, 0, 0, {}, {}});
  spec.decoders.push_back({StepKind::kDecodeFuse, 0, 0, {}, {}});
  if (vocab.add_space_prefix.value_or(true)) {
    spec.decoders.push_back({StepKind::kDecodeStrip, 1, 0, " ", {}});
  }
  AddSurrounding(vocab, /*bos_default=*/true, spec);
  return {};
}

Result<void> ReadMerges(const GgufVocab& vocab, Bpe& bpe) {
  MergeReader reader(bpe.vocab, bpe.bytes, /*later_prefix=*/{});
  reader.Reserve(vocab.merges.size());
  for (std::size_t i = 0; i < vocab.merges.size(); ++i) {
    const std::string_view line = vocab.merges[i];
    const std::size_t space = line.find(' ', 1);
    if (space == std::string_view::npos) {
      return Bad(vocab, "merges[" + std::to_string(i) + "] has no space");
    }
    reader.Add(line.substr(0, space), line.substr(space + 1));
  }
  if (const auto missing = reader.Finish()) {
    return Bad(vocab, "merges[" + std::to_string(*missing) + "] (" +
                          std::string(vocab.merges[*missing]) +
                          ") is not in the vocabulary");
  }
  HEARTH_ASSIGN(bpe.merges, MergeTable::Make(reader.merges(), vocab.what));
  return {};
}

Result<void> ReadByteLevel(const GgufVocab& vocab, TokenizerSpec& spec) {
  HEARTH_ASSIGN(const GgufPre pre, FindGgufPre(vocab.pre, vocab.what));
  if (vocab.merges.empty() && !vocab.merges_given) {
    return Bad(vocab, "merges is missing");
  }
  std::size_t text_bytes = 0;
  for (const std::string_view token : vocab.tokens) text_bytes += token.size();
  VocabBuilder builder(vocab.tokens.size(), text_bytes);
  std::string bytes;
  for (std::size_t id = 0; id < vocab.tokens.size(); ++id) {
    const GgufTokenType type = TypeOf(vocab, id);
    std::string_view text = vocab.tokens[id];
    unsigned flags = PlainFlags(type);
    if (type == GgufTokenType::kUserDefined) flags |= kPieceLiteral;
    bytes.clear();
    // A marker spelled in ASCII stays unreachable for merges as well.
    if ((flags & kPieceSpecial) == 0 && AppendUnspelled(bytes, text)) {
      flags |= kPieceFindable;
      if ((flags & kPieceLiteral) == 0) {
        text = bytes;
        flags |= kPieceRawBytes;
      } else if (bytes != text) {
        flags &= ~unsigned{kPieceFindable};
      }
    }
    builder.Add(text, static_cast<std::uint8_t>(flags));
  }
  Bpe& bpe = spec.bpe;
  HEARTH_ASSIGN(bpe.vocab, builder.Finish(vocab.what));
  bpe.bytes = true;
  bpe.ignore_merges = pre.ignore_merges;
  HEARTH_TRY(ReadMerges(vocab, bpe));
  spec.bos = vocab.bos;
  spec.eos = vocab.eos;
  for (const std::string_view pattern : pre.patterns) {
    spec.splits.push_back({StepKind::kSplitRegex,
                           static_cast<std::uint8_t>(SplitBehavior::kIsolated),
                           0,
                           std::string(pattern),
                           {}});
  }
  spec.decoders.push_back({StepKind::kDecodeByteLevel, 0, 0, {}, {}});
  AddSurrounding(vocab, pre.add_bos, spec);
  return {};
}

// Gemma 4: merges over whole characters instead of bytes, with the mark of
// sentencepiece for a space and bytes for what has no piece.
Result<void> ReadCharacterLevel(const GgufVocab& vocab, TokenizerSpec& spec) {
  if (vocab.merges.empty() && !vocab.merges_given) {
    return Bad(vocab, "merges is missing");
  }
  std::size_t text_bytes = 0;
  for (const std::string_view token : vocab.tokens) text_bytes += token.size();
  VocabBuilder builder(vocab.tokens.size(), text_bytes);
  for (std::size_t id = 0; id < vocab.tokens.size(); ++id) {
    const GgufTokenType type = TypeOf(vocab, id);
    unsigned flags = PlainFlags(type);
    if (type == GgufTokenType::kByte) {
      flags |= kPieceByte;
    } else if ((flags & kPieceSpecial) == 0) {
      flags |= kPieceFindable;
    }
    builder.Add(vocab.tokens[id], static_cast<std::uint8_t>(flags));
  }
  Bpe& bpe = spec.bpe;
  HEARTH_ASSIGN(bpe.vocab, builder.Finish(vocab.what));
  bpe.byte_fallback = true;
  HEARTH_TRY(ReadMerges(vocab, bpe));
  spec.bos = vocab.bos;
  spec.eos = vocab.eos;
  if (vocab.unk.value_or(-1) >= 0) {
    bpe.unk_id = static_cast<std::uint32_t>(*vocab.unk);
  }
  const std::string mark(kMark);
  if (vocab.add_space_prefix.value_or(false)) {
    spec.normalizers.push_back({StepKind::kPrepend, 0, 0, mark, {}});
  }
  spec.normalizers.push_back({StepKind::kReplaceText, 0, 0, " ", mark});
  spec.splits.push_back({StepKind::kSplitRegex,
                         static_cast<std::uint8_t>(SplitBehavior::kIsolated),
                         0,
                         "[^\\n]+|[\\n]+",
                         {}});
  spec.decoders.push_back({StepKind::kReplaceText, 0, 0, mark, " "});
  spec.decoders.push_back({StepKind::kDecodeByteFallback, 0, 0, {}, {}});
  spec.decoders.push_back({StepKind::kDecodeFuse, 0, 0, {}, {}});
  AddSurrounding(vocab, /*bos_default=*/true, spec);
  return {};
}

}  // namespace

bool DropsSpaceAfter(std::string_view general_name, std::string_view token) {
  const std::string name = LowerAscii(std::string(general_name));
  const bool phi3 = name.find("phi-3") != std::string::npos ||
                    name.find("phi3") != std::string::npos;
  return phi3 && token != "<unk>" && token != "<s>" && token != "<|endoftext|>";
}

Result<std::unique_ptr<Tokenizer>> MakeGgufTokenizer(const GgufVocab& given) {
  TokenizerSpec spec;
  HEARTH_TRY(CheckSizes(given));
  GgufVocab vocab = given;
  vocab.token_types = CorrectedTypes(given);
  CollectAdded(vocab, spec);
  if (vocab.model == "llama") {
    spec.kind = "sentencepiece-style BPE";
    HEARTH_TRY(ReadSentencePiece(vocab, spec));
  } else if (vocab.model == "gemma4") {
    spec.kind = "BPE over characters";
    HEARTH_TRY(ReadCharacterLevel(vocab, spec));
  } else if (vocab.model == "gpt2") {
    spec.kind = vocab.pre.empty() ? "byte-level BPE, pre-tokenizer not named"
                                  : "byte-level BPE";
    HEARTH_TRY(ReadByteLevel(vocab, spec));
  } else {
    return Error{Code::kUnsupported,
                 vocab.what + ": tokenizer.ggml.model \"" + vocab.model +
                     "\" is not supported (llama, gpt2 and gemma4 are)"};
  }
  if (!vocab.pipeline.empty()) {
    HEARTH_TRY(ApplyPipeline(vocab.pipeline, vocab.what, spec));
  }
  FindEnds(spec);
  HEARTH_ASSIGN(auto made,
                PipelineTokenizer::Make(std::move(spec), vocab.what));
  return std::unique_ptr<Tokenizer>(std::move(made));
}

}  // namespace hearth
