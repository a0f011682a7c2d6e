#include "text/bpe/compiled_vocab.h"

#include <array>
#include <bit>

#include "text/pipeline_tokenizer.h"

namespace hearth {
namespace {

// Offsets of the header; see the format page.
constexpr std::array<std::uint8_t, 8> kMagic = {'H',  'T',  'O',  'K',
                                                0x0D, 0x0A, 0x1A, 0x0A};
constexpr std::size_t kHeaderBytes = 256;
constexpr std::size_t kAlign = 64;
enum Offset : std::size_t {
  kAtVersion = 8,
  kAtSectionCount = 12,
  kAtSource = 16,
  kAtFingerprint = 48,
  kAtFileBytes = 80,
  kAtPayloadChecksum = 88,
  kAtVocabSeed = 96,
  kAtMergeSeed = 104,
  kAtSections = 120,
  kAtHeaderChecksum = 248,
};
// The order of the sections.
enum Section : std::size_t {
  kOffsets,
  kText,
  kFlags,
  kPriority,
  kTextSlots,
  kMergeSlots,
  kSpec,
  kSectionCount,
};

// --- writing ---

void PutText(std::vector<std::byte>& out, std::string_view text) {
  AppendLe(out, static_cast<std::uint32_t>(text.size()));
  const ByteSpan bytes = AsBytes(text);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void PutSteps(std::vector<std::byte>& out, const std::vector<Step>& steps) {
  AppendLe(out, static_cast<std::uint32_t>(steps.size()));
  for (const Step& step : steps) {
    AppendLe(out, static_cast<std::uint8_t>(step.kind));
    AppendLe(out, step.a);
    AppendLe(out, step.b);
    AppendLe(out, std::uint8_t{0});
    PutText(out, step.text);
    PutText(out, step.text2);
  }
}

void PutIds(std::vector<std::byte>& out, std::span<const std::int32_t> ids) {
  AppendLe(out, static_cast<std::uint32_t>(ids.size()));
  for (const std::int32_t id : ids) AppendLe(out, id);
}

std::vector<std::byte> SpecBytes(const TokenizerSpec& spec) {
  std::vector<std::byte> out;
  const Bpe& bpe = spec.bpe;
  PutText(out, spec.kind);
  for (const bool flag : {bpe.by_score, bpe.bytes, bpe.ignore_merges,
                          bpe.byte_fallback, bpe.fuse_unk}) {
    AppendLe(out, static_cast<std::uint8_t>(flag));
  }
  AppendLe(out, bpe.unk_id);
  PutText(out, bpe.later_prefix);
  PutText(out, bpe.last_suffix);
  PutSteps(out, spec.normalizers);
  PutSteps(out, spec.splits);
  PutSteps(out, spec.decoders);
  AppendLe(out, static_cast<std::uint32_t>(spec.added.size()));
  for (const AddedToken& token : spec.added) {
    AppendLe(out, token.id);
    AppendLe(out, static_cast<std::uint8_t>(
                      static_cast<unsigned>(token.single_word) |
                      static_cast<unsigned>(token.lstrip) << 1 |
                      static_cast<unsigned>(token.rstrip) << 2 |
                      static_cast<unsigned>(token.normalized) << 3 |
                      static_cast<unsigned>(token.special) << 4));
    PutText(out, token.content);
  }
  PutIds(out, spec.before);
  PutIds(out, spec.after);
  PutIds(out, spec.ends);
  AppendLe(out, spec.bos.value_or(-1));
  AppendLe(out, spec.eos.value_or(-1));
  return out;
}

// --- reading ---

Error Corrupt(const std::string& what, const char* fault) {
  return {Code::kCorrupt, what + ": compiled tokenizer: " + fault};
}

std::string TakeText(ByteReader& in) {
  return std::string(AsText(in.Take(in.Read<std::uint32_t>())));
}

bool KnownKind(std::uint8_t kind) {
  return (kind >= 1 && kind <= 11) || (kind >= 32 && kind <= 40) ||
         (kind >= 64 && kind <= 69);
}

std::vector<Step> TakeSteps(ByteReader& in, bool& ok) {
  std::vector<Step> steps;
  const auto n = in.Read<std::uint32_t>();
  for (std::uint32_t i = 0; i < n && in.ok() && ok; ++i) {
    const auto kind = in.Read<std::uint8_t>();
    Step step{static_cast<StepKind>(kind), 0, 0, {}, {}};
    step.a = in.Read<std::uint8_t>();
    step.b = in.Read<std::uint8_t>();
    in.Read<std::uint8_t>();
    step.text = TakeText(in);
    step.text2 = TakeText(in);
    ok = KnownKind(kind) && IsValidUtf8(step.text) && IsValidUtf8(step.text2);
    const bool needs_text = step.kind == StepKind::kReplaceText ||
                            step.kind == StepKind::kDecodeStrip ||
                            step.kind == StepKind::kMetaspace ||
                            step.kind == StepKind::kDecodeMetaspace;
    if (needs_text && step.text.empty()) ok = false;
    steps.push_back(std::move(step));
  }
  return steps;
}

std::vector<std::int32_t> TakeIds(ByteReader& in) {
  const auto n = in.Read<std::uint32_t>();
  const ByteSpan bytes = in.Take(std::uint64_t{n} * 4);
  std::vector<std::int32_t> ids(bytes.size() / 4);
  if (!ids.empty()) std::memcpy(ids.data(), bytes.data(), bytes.size());
  return ids;
}

bool TakeSpec(ByteSpan bytes, TokenizerSpec& spec) {
  ByteReader in(bytes);
  bool ok = true;
  Bpe& bpe = spec.bpe;
  spec.kind = TakeText(in);
  for (bool* flag : {&bpe.by_score, &bpe.bytes, &bpe.ignore_merges,
                     &bpe.byte_fallback, &bpe.fuse_unk}) {
    *flag = in.Read<std::uint8_t>() != 0;
  }
  bpe.unk_id = in.Read<std::uint32_t>();
  bpe.later_prefix = TakeText(in);
  bpe.last_suffix = TakeText(in);
  spec.normalizers = TakeSteps(in, ok);
  spec.splits = TakeSteps(in, ok);
  spec.decoders = TakeSteps(in, ok);
  const auto n_added = in.Read<std::uint32_t>();
  for (std::uint32_t i = 0; i < n_added && in.ok(); ++i) {
    AddedToken token;
    token.id = in.Read<std::int32_t>();
    const auto rules = in.Read<std::uint8_t>();
    token.single_word = (rules & 1) != 0;
    token.lstrip = (rules & 2) != 0;
    token.rstrip = (rules & 4) != 0;
    token.normalized = (rules & 8) != 0;
    token.special = (rules & 16) != 0;
    token.content = TakeText(in);
    ok = ok && IsValidUtf8(token.content);
    spec.added.push_back(std::move(token));
  }
  spec.before = TakeIds(in);
  spec.after = TakeIds(in);
  spec.ends = TakeIds(in);
  const auto bos = in.Read<std::int32_t>();
  const auto eos = in.Read<std::int32_t>();
  if (bos >= 0) spec.bos = bos;
  if (eos >= 0) spec.eos = eos;
  return ok && in.ok() && in.remaining() == 0;
}

template <typename T>
bool View(ByteSpan bytes, FlatArray<T>& out) {
  if (bytes.size() % sizeof(T) != 0) return false;
  out = FlatArray<T>(std::span(reinterpret_cast<const T*>(bytes.data()),
                               bytes.size() / sizeof(T)));
  return true;
}

bool CheckVocab(const Vocab& vocab) {
  const std::uint32_t n = vocab.size();
  if (vocab.offsets.size() != std::size_t{n} + 1 || vocab.offsets[0] != 0 ||
      vocab.offsets[n] != vocab.text.size()) {
    return false;
  }
  bool ok = true;
  for (std::uint32_t id = 0; id < n; ++id) {
    ok &= vocab.offsets[id] <= vocab.offsets[id + 1];
  }
  // Here and below without branches: which slots are empty is as good as
  // random, and a start waits for this.
  std::size_t n_empty = 0;
  for (const TextSlot& slot : vocab.slots.span()) {
    const bool empty = slot.id == kNoId;
    n_empty += empty;
    ok &= empty | (slot.id < n);
  }
  return ok && n_empty > 0 && std::has_single_bit(vocab.slots.size());
}

bool CheckMerges(const MergeTable& merges, std::uint32_t n) {
  bool ok = true;
  std::size_t n_empty = 0;
  const std::size_t size = merges.slots.size();
  for (const MergeSlot& slot : merges.slots.span()) {
    const bool empty = slot.left == kNoId;
    n_empty += empty;
    ok &= empty | ((slot.left < n) & (slot.right < n) & (slot.id < n) &
                   (slot.rank < size));
  }
  return size == 0 || (ok && n_empty > 0 && std::has_single_bit(size));
}

Result<void> CheckHeader(ByteSpan bytes, const Digest& source,
                         const std::string& what) {
  if (bytes.size() < kHeaderBytes) return Corrupt(what, "it is too short");
  const std::byte* header = bytes.data();
  if (std::memcmp(header, kMagic.data(), kMagic.size()) != 0) {
    return Corrupt(what, "it does not start as one");
  }
  if (LoadLe<std::uint32_t>(header + kAtVersion) != kCompiledVersion) {
    return Error{Code::kIncompatible,
                 what + ": compiled tokenizer of another version"};
  }
  if (LoadLe<std::uint64_t>(header + kAtHeaderChecksum) !=
      Checksum64(bytes.first(kAtHeaderChecksum))) {
    return Corrupt(what, "the header's checksum is wrong");
  }
  if (std::memcmp(header + kAtSource, source.bytes.data(), 32) != 0) {
    return Error{Code::kIncompatible,
                 what + ": compiled tokenizer of another source"};
  }
  if (LoadLe<std::uint64_t>(header + kAtFileBytes) != bytes.size() ||
      LoadLe<std::uint32_t>(header + kAtSectionCount) != kSectionCount) {
    return Corrupt(what, "its length is not what the header says");
  }
  if (LoadLe<std::uint64_t>(header + kAtPayloadChecksum) !=
      Checksum64(bytes.subspan(kHeaderBytes))) {
    return Corrupt(what, "the checksum is wrong");
  }
  if (reinterpret_cast<std::uintptr_t>(header) % 16 != 0) {
    return Error{Code::kInvalidArgument,
                 what + ": compiled tokenizer is not aligned to 16 bytes"};
  }
  return {};
}

Result<std::array<ByteSpan, kSectionCount>> FindSections(
    ByteSpan bytes, const std::string& what) {
  std::array<ByteSpan, kSectionCount> sections;
  for (std::size_t s = 0; s < kSectionCount; ++s) {
    const std::byte* entry = bytes.data() + kAtSections + s * 16;
    const auto offset = LoadLe<std::uint64_t>(entry);
    const auto length = LoadLe<std::uint64_t>(entry + 8);
    if (offset % kAlign != 0 || offset < kHeaderBytes ||
        offset > bytes.size() || length > bytes.size() - offset) {
      return Corrupt(what, "a section lies outside the file");
    }
    sections[s] = bytes.subspan(offset, length);
  }
  return sections;
}

}  // namespace

Digest TokenizerSource(std::string_view tokenizer_json,
                       std::string_view tokenizer_config_json) {
  return Sha256()
      .Field("hearth tokenizer source 1")
      .Field(tokenizer_json)
      .Field(tokenizer_config_json)
      .Finish();
}

Result<std::vector<std::byte>> CompileTokenizer(const Tokenizer& tokenizer,
                                                const Digest& source) {
  if (tokenizer.spec() == nullptr) {
    return {Code::kInvalidArgument, std::string("a tokenizer of kind ") +
                                        std::string(tokenizer.kind()) +
                                        " has no compiled form"};
  }
  const TokenizerSpec& spec = *tokenizer.spec();
  const Vocab& vocab = spec.bpe.vocab;
  const std::vector<std::byte> spec_bytes = SpecBytes(spec);
  const std::array<ByteSpan, kSectionCount> sections = {
      std::as_bytes(vocab.offsets.span()),
      std::as_bytes(vocab.text.span()),
      std::as_bytes(vocab.flags.span()),
      std::as_bytes(vocab.priority.span()),
      std::as_bytes(vocab.slots.span()),
      std::as_bytes(spec.bpe.merges.slots.span()),
      ByteSpan(spec_bytes)};
  std::vector<std::byte> out(kHeaderBytes);
  for (std::size_t s = 0; s < kSectionCount; ++s) {
    out.resize((out.size() + kAlign - 1) / kAlign * kAlign);
    StoreLe(out.data() + kAtSections + s * 16,
            static_cast<std::uint64_t>(out.size()));
    StoreLe(out.data() + kAtSections + s * 16 + 8,
            static_cast<std::uint64_t>(sections[s].size()));
    out.insert(out.end(), sections[s].begin(), sections[s].end());
  }
  const Digest fingerprint = tokenizer.Fingerprint();
  std::byte* header = out.data();
  std::memcpy(header, kMagic.data(), kMagic.size());
  StoreLe(header + kAtVersion, kCompiledVersion);
  StoreLe(header + kAtSectionCount, static_cast<std::uint32_t>(kSectionCount));
  std::memcpy(header + kAtSource, source.bytes.data(), 32);
  std::memcpy(header + kAtFingerprint, fingerprint.bytes.data(), 32);
  StoreLe(header + kAtFileBytes, static_cast<std::uint64_t>(out.size()));
  StoreLe(header + kAtPayloadChecksum,
          Checksum64(ByteSpan(out).subspan(kHeaderBytes)));
  StoreLe(header + kAtVocabSeed, vocab.seed);
  StoreLe(header + kAtMergeSeed, spec.bpe.merges.seed);
  StoreLe(header + kAtHeaderChecksum,
          Checksum64(ByteSpan(out).first(kAtHeaderChecksum)));
  return out;
}

Result<std::unique_ptr<Tokenizer>> FromCompiled(
    ByteSpan bytes, const Digest& source, const std::string& what,
    std::shared_ptr<const void> backing) {
  HEARTH_TRY(CheckHeader(bytes, source, what));
  HEARTH_ASSIGN(const auto sections, FindSections(bytes, what));
  TokenizerSpec spec;
  Vocab& vocab = spec.bpe.vocab;
  MergeTable& merges = spec.bpe.merges;
  const bool shaped = View(sections[kOffsets], vocab.offsets) &&
                      View(sections[kText], vocab.text) &&
                      View(sections[kFlags], vocab.flags) &&
                      View(sections[kPriority], vocab.priority) &&
                      View(sections[kTextSlots], vocab.slots) &&
                      View(sections[kMergeSlots], merges.slots);
  if (!shaped || vocab.flags.size() >= INT32_MAX || !CheckVocab(vocab)) {
    return Corrupt(what, "the vocabulary does not hold together");
  }
  if (!CheckMerges(merges, vocab.size())) {
    return Corrupt(what, "the merges do not hold together");
  }
  if (!TakeSpec(sections[kSpec], spec) ||
      (spec.bpe.unk_id != kNoId && spec.bpe.unk_id >= vocab.size()) ||
      (spec.bpe.by_score && vocab.priority.size() != vocab.size())) {
    return Corrupt(what, "the pipeline does not hold together");
  }
  vocab.seed = LoadLe<std::uint64_t>(bytes.data() + kAtVocabSeed);
  merges.seed = LoadLe<std::uint64_t>(bytes.data() + kAtMergeSeed);
  for (std::uint32_t id = 0; id < vocab.size(); ++id) {
    if ((vocab.flags[id] & kPieceFindable) == 0) continue;
    vocab.longest_piece = std::max(vocab.longest_piece,
                                   vocab.offsets[id + 1] - vocab.offsets[id]);
  }
  vocab.FindByteIds();
  HEARTH_ASSIGN(auto made, PipelineTokenizer::Make(std::move(spec), what,
                                                   std::move(backing)));
  Digest fingerprint;
  std::memcpy(fingerprint.bytes.data(), bytes.data() + kAtFingerprint, 32);
  made->SetFingerprint(fingerprint);
  return std::unique_ptr<Tokenizer>(std::move(made));
}

}  // namespace hearth
