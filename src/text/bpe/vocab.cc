#include "text/bpe/vocab.h"

#include <algorithm>
#include <utility>

#include "text/unicode/byte_alphabet.h"

namespace hearth {
namespace {

// How many entries ahead memory is asked for.
constexpr std::size_t kAhead = 12;

// Puts every findable piece in; false when a probe gets too long.
bool FillTextSlots(const Vocab& vocab, std::uint64_t seed,
                   std::vector<TextSlot>& slots) {
  std::fill(slots.begin(), slots.end(), TextSlot{0, kNoId});
  const std::size_t mask = slots.size() - 1;
  std::vector<std::uint64_t> hashes(vocab.size());
  for (std::uint32_t id = 0; id < vocab.size(); ++id) {
    hashes[id] = HashText(vocab.Text(id), seed);
  }
  for (std::uint32_t id = 0; id < vocab.size(); ++id) {
    if ((vocab.flags[id] & kPieceFindable) == 0) continue;
    const std::string_view piece = vocab.Text(id);
    const std::uint64_t hash = hashes[id];
    if (id + kAhead < vocab.size()) {
      __builtin_prefetch(&slots[hashes[id + kAhead] & mask]);
    }
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    std::size_t i = hash & mask;
    std::size_t probe = 0;
    while (slots[i].id != kNoId &&
           (slots[i].tag != tag || vocab.Text(slots[i].id) != piece)) {
      i = (i + 1) & mask;
      if (++probe > kProbeMax) return false;
    }
    slots[i] = {tag, id};
  }
  return true;
}

bool FillMergeSlots(std::span<const MergeTable::Merge> merges,
                    std::uint64_t seed, std::vector<MergeSlot>& slots) {
  std::fill(slots.begin(), slots.end(), MergeSlot{kNoId, 0, 0, 0});
  const std::size_t mask = slots.size() - 1;
  for (std::uint32_t rank = 0; rank < merges.size(); ++rank) {
    const MergeTable::Merge& merge = merges[rank];
    if (rank + kAhead < merges.size()) {
      const MergeTable::Merge& later = merges[rank + kAhead];
      __builtin_prefetch(
          &slots[HashPair(later.left, later.right, seed) & mask]);
    }
    std::size_t i = HashPair(merge.left, merge.right, seed) & mask;
    std::size_t probe = 0;
    while (slots[i].left != kNoId &&
           (slots[i].left != merge.left || slots[i].right != merge.right)) {
      i = (i + 1) & mask;
      if (++probe > kProbeMax) return false;
    }
    slots[i] = {merge.left, merge.right, rank, merge.id};
  }
  return true;
}

}  // namespace

// "<0xNN>" pieces first, else pieces of one byte.
void Vocab::FindByteIds() {
  std::fill(std::begin(byte_ids), std::end(byte_ids), kNoId);
  for (std::uint32_t id = 0; id < size(); ++id) {
    if ((flags[id] & kPieceByte) == 0) continue;
    const int value = ByteOfPiece(Text(id));
    if (value >= 0) byte_ids[value] = id;
  }
  for (int b = 0; b < 256; ++b) {
    if (byte_ids[b] != kNoId) continue;
    const char c = static_cast<char>(static_cast<unsigned char>(b));
    byte_ids[b] = Find({&c, 1});
  }
}

VocabBuilder::VocabBuilder(std::size_t n_pieces, std::size_t text_bytes) {
  offsets_.reserve(n_pieces + 1);
  flags_.reserve(n_pieces);
  text_.reserve(text_bytes);
}

void VocabBuilder::Add(std::string_view text, std::uint8_t flags) {
  text_.insert(text_.end(), text.begin(), text.end());
  offsets_.push_back(static_cast<std::uint32_t>(text_.size()));
  flags_.push_back(flags);
}

Result<Vocab> VocabBuilder::Finish(const std::string& what) {
  if (text_.size() >= kNoId) {
    return {Code::kUnsupported, what + ": more than 4 GB of vocabulary text"};
  }
  Vocab vocab;
  std::size_t n_findable = 0;
  for (std::uint32_t id = 0; id < size(); ++id) {
    if ((flags_[id] & kPieceFindable) == 0) continue;
    ++n_findable;
    vocab.longest_piece =
        std::max(vocab.longest_piece, offsets_[id + 1] - offsets_[id]);
  }
  vocab.offsets = FlatArray<std::uint32_t>(std::move(offsets_));
  vocab.text = FlatArray<char>(std::move(text_));
  vocab.flags = FlatArray<std::uint8_t>(std::move(flags_));
  std::vector<TextSlot> slots(SlotCount(n_findable));
  while (!FillTextSlots(vocab, vocab.seed, slots)) {
    if (++vocab.seed == kSeedsMax) {
      return {Code::kCorrupt, what +
                                  ": the vocabulary's pieces do not spread "
                                  "over a hash table; the file looks forged"};
    }
  }
  vocab.slots = FlatArray<TextSlot>(std::move(slots));
  vocab.FindByteIds();
  return vocab;
}

Result<MergeTable> MergeTable::Make(std::span<const Merge> merges,
                                    const std::string& what) {
  MergeTable table;
  std::vector<MergeSlot> slots(SlotCount(merges.size()));
  while (!FillMergeSlots(merges, table.seed, slots)) {
    if (++table.seed == kSeedsMax) {
      return {Code::kCorrupt, what +
                                  ": the merges do not spread over a hash "
                                  "table; the file looks forged"};
    }
  }
  table.slots = FlatArray<MergeSlot>(std::move(slots));
  return table;
}

}  // namespace hearth
