#include "text/fingerprint.h"

#include "text/pipeline_tokenizer.h"

namespace hearth {
namespace {

template <typename T>
ByteSpan BytesOf(std::span<const T> values) {
  return std::as_bytes(values);
}

void AddSteps(Sha256& sha, const std::vector<Step>& steps) {
  sha.Field(steps.size());
  for (const Step& step : steps) {
    sha.Field(static_cast<std::uint64_t>(step.kind));
    sha.Field(static_cast<std::uint64_t>(step.a));
    sha.Field(static_cast<std::uint64_t>(step.b));
    sha.Field(step.text);
    sha.Field(step.text2);
  }
}

// The merges in order of rank, whatever the table's layout.
std::vector<std::uint32_t> MergesByRank(const MergeTable& table) {
  std::uint32_t n = 0;
  for (const MergeSlot& slot : table.slots.span()) {
    if (slot.left != kNoId) n = std::max(n, slot.rank + 1);
  }
  std::vector<std::uint32_t> flat(std::size_t{n} * 3, kNoId);
  for (const MergeSlot& slot : table.slots.span()) {
    if (slot.left == kNoId) continue;
    std::uint32_t* merge = &flat[std::size_t{slot.rank} * 3];
    merge[0] = slot.left;
    merge[1] = slot.right;
    merge[2] = slot.id;
  }
  return flat;
}

}  // namespace

Digest FingerprintOf(const TokenizerSpec& spec) {
  const Bpe& bpe = spec.bpe;
  Sha256 sha;
  sha.Field("hearth tokenizer: pipeline 1");
  sha.Field(BytesOf(bpe.vocab.offsets.span()));
  sha.Field(BytesOf(bpe.vocab.text.span()));
  sha.Field(BytesOf(bpe.vocab.flags.span()));
  sha.Field(BytesOf(bpe.vocab.priority.span()));
  sha.Field(BytesOf(std::span<const std::uint32_t>(MergesByRank(bpe.merges))));
  for (const bool flag : {bpe.by_score, bpe.bytes, bpe.ignore_merges,
                          bpe.byte_fallback, bpe.fuse_unk}) {
    sha.Field(static_cast<std::uint64_t>(flag));
  }
  sha.Field(static_cast<std::uint64_t>(bpe.unk_id));
  sha.Field(bpe.later_prefix);
  sha.Field(bpe.last_suffix);
  AddSteps(sha, spec.normalizers);
  AddSteps(sha, spec.splits);
  AddSteps(sha, spec.decoders);
  sha.Field(spec.added.size());
  for (const AddedToken& token : spec.added) {
    sha.Field(static_cast<std::uint64_t>(token.id));
    sha.Field(token.content);
    const unsigned rules = static_cast<unsigned>(token.single_word) |
                           static_cast<unsigned>(token.lstrip) << 1 |
                           static_cast<unsigned>(token.rstrip) << 2 |
                           static_cast<unsigned>(token.normalized) << 3 |
                           static_cast<unsigned>(token.special) << 4;
    sha.Field(std::uint64_t{rules});
  }
  sha.Field(BytesOf(std::span<const std::int32_t>(spec.before)));
  sha.Field(BytesOf(std::span<const std::int32_t>(spec.after)));
  return sha.Finish();
}

}  // namespace hearth
