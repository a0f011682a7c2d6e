// The pieces of a vocabulary and the merges between them, as flat arrays.
//
// Shapes  offsets is [n_pieces + 1] into `text`; flags and priority are
//         [n_pieces] (priority only for vocabularies that merge by score).
// Text    of a byte-level piece: the raw bytes it stands for. Of any other
//         piece: its spelling in the file.
// Errors  Make and AddMerges: kCorrupt when a claim of the file does not hold.
// Threads const methods may run at once.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/result.h"
#include "text/bpe/flat_table.h"

namespace hearth {

// Bits of a piece. They reach the disk; never renumber.
enum PieceFlag : std::uint8_t {
  kPiecePresent = 1,    // the id has a piece
  kPieceSpecial = 2,    // control: not shown when special tokens are skipped
  kPieceRawBytes = 4,   // text holds raw bytes; the spelling maps them
  kPieceByte = 8,       // spelled <0xNN>: stands for one byte
  kPieceFindable = 16,  // reachable by merging, so in the text table
  kPieceLiteral = 32,   // added token: its spelling is its text as it is
};

class Vocab {
 public:
  std::uint32_t size() const {
    return static_cast<std::uint32_t>(flags.size());
  }
  std::string_view Text(std::uint32_t id) const {
    return {text.data() + offsets[id], offsets[id + 1] - offsets[id]};
  }
  // The findable piece with this text, or kNoId.
  std::uint32_t Find(std::string_view piece) const {
    return FindHashed(piece, HashText(piece, seed));
  }
  std::uint32_t FindHashed(std::string_view piece, std::uint64_t hash) const {
    if (slots.empty()) return kNoId;
    const auto tag = static_cast<std::uint32_t>(hash >> 32);
    const std::size_t mask = slots.size() - 1;
    for (std::size_t i = hash & mask;; i = (i + 1) & mask) {
      const TextSlot slot = slots[i];
      if (slot.id == kNoId) return kNoId;
      if (slot.tag == tag && Text(slot.id) == piece) return slot.id;
    }
  }
  // The id of byte `b` alone: a one-byte piece, or "<0xNN>". kNoId without one.
  std::uint32_t ByteId(unsigned char b) const { return byte_ids[b]; }

  // Fills byte_ids from the pieces; the other members are set.
  void FindByteIds();

  FlatArray<std::uint32_t> offsets;
  FlatArray<char> text;
  FlatArray<std::uint8_t> flags;
  FlatArray<std::uint32_t> priority;  // lower merges first
  FlatArray<TextSlot> slots;
  std::uint64_t seed = 0;
  std::uint32_t longest_piece = 0;  // bytes, among the findable ones
  std::uint32_t byte_ids[256];
};

// Collects pieces in order of id, then builds the table.
class VocabBuilder {
 public:
  explicit VocabBuilder(std::size_t n_pieces, std::size_t text_bytes);

  // The next id. Later pieces win where two findable ones have one text.
  void Add(std::string_view text, std::uint8_t flags);
  std::uint32_t size() const {
    return static_cast<std::uint32_t>(flags_.size());
  }

  // kCorrupt when no seed spreads the pieces.
  Result<Vocab> Finish(const std::string& what);

 private:
  std::vector<std::uint32_t> offsets_{0};
  std::vector<char> text_;
  std::vector<std::uint8_t> flags_;
};

// Pairs of ids and what they become.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t left, right, id;
  };
  // `merges` in order of rank. A pair that is there twice keeps the later rank,
  // as the reference does.
  static Result<MergeTable> Make(std::span<const Merge> merges,
                                 const std::string& what);

  const MergeSlot* Find(std::uint32_t left, std::uint32_t right) const {
    if (slots.empty()) return nullptr;
    const std::size_t mask = slots.size() - 1;
    for (std::size_t i = HashPair(left, right, seed) & mask;;
         i = (i + 1) & mask) {
      const MergeSlot& slot = slots[i];
      if (slot.left == left && slot.right == right) return &slot;
      if (slot.left == kNoId) return nullptr;
    }
  }

  FlatArray<MergeSlot> slots;
  std::uint64_t seed = 0;
};

}  // namespace hearth
