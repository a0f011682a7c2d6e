// A prompt file: the chain of images that one prompt consists of
// (docs/formats/manifest.md). As a manifest in a store it names them; as a
// bundle it carries them. The token ids stand in the images. Works on memory
// only.
//
// Errors  kCorrupt, kIncompatible: as for block images.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "cache/block_chain.h"
#include "hearth/result.h"
#include "store/format/block_image.h"

namespace hearth {

inline constexpr std::array<char, 8> kPromptMagic = {'H',  'K',  'V',    'P',
                                                     '\r', '\n', '\x1a', '\n'};
inline constexpr std::uint32_t kPromptVersion = 2;
// Of a model that carries states: names those that are stored, too.
inline constexpr std::uint32_t kPromptStatesVersion = 3;

// Offsets of the fixed part; never reused for another meaning.
inline constexpr std::size_t kPromptChecksumAt = 8;  // of [16, header_bytes)
inline constexpr std::size_t kPromptVersionAt = 16;
inline constexpr std::size_t kPromptHeaderBytesAt = 20;
inline constexpr std::size_t kPromptTokenCountAt = 24;
inline constexpr std::size_t kPromptBlockTokensAt = 28;
inline constexpr std::size_t kPromptModelIdAt = 32;
inline constexpr std::size_t kPromptFormatIdAt = 64;
inline constexpr std::size_t kPromptRootIdAt = 96;
inline constexpr std::size_t kPromptFileBytesAt = 128;
inline constexpr std::size_t kPromptEntryCountAt = 136;
inline constexpr std::size_t kPromptNameBytesAt = 140;
inline constexpr std::size_t kPromptFlagsAt = 144;
inline constexpr std::size_t kPromptStateCountAt = 148;  // version 3 only
inline constexpr std::size_t kPromptEntriesAt = 152;

inline constexpr std::uint32_t kPromptHoldsImages = 1;

// Limits, checked before anything is allocated.
inline constexpr std::uint32_t kPromptTokensMax = 1 << 26;
inline constexpr std::uint32_t kPromptNameBytesMax = 255;
// Of a manifest: a million images.
inline constexpr std::uint64_t kManifestBytesMax = std::uint64_t{40} << 20;
inline constexpr std::uint64_t kBundleBytesMax = std::uint64_t{1} << 46;

// One image: a whole block, or a piece of one.
struct PromptEntry {
  Digest id;
  std::uint64_t end = 0;          // the prompt's tokens up to here
  std::uint64_t image_at = 0;     // from the file's start; 0: in blocks/
  std::uint64_t image_bytes = 0;  // 0 when not in this file
};

struct PromptHeader {
  Digest model_id, format_id, root_id;
  int block_tokens = 0;
  std::string model_name;
  std::vector<PromptEntry> entries;  // each begins where the one before ended
  // Without states behind them the blocks of such a model are of no use.
  bool carries_states = false;
  // Rising; `end` is the position, the id that of the prefix.
  std::vector<PromptEntry> states;

  std::uint64_t n_tokens() const { return entries.back().end; }
  std::uint64_t FirstOf(std::size_t index) const {
    return index == 0 ? 0 : entries[index - 1].end;
  }
  // Where the block begins that entry `index` is (a piece of).
  std::uint64_t BlockStart(std::size_t index) const {
    const auto step = static_cast<std::uint64_t>(block_tokens);
    return FirstOf(index) / step * step;
  }
  // Whether the entry ends its block, be that full or the prompt's last.
  bool EndsBlock(std::size_t index) const {
    return index + 1 == entries.size() ||
           entries[index].end % static_cast<std::uint64_t>(block_tokens) == 0;
  }
  const Digest& ParentOf(std::size_t index) const;
  bool holds_images() const { return entries.front().image_at != 0; }
};

// The header of a prompt of this identity, without entries.
PromptHeader HeaderOf(const KvIdentity& identity, const KvSpec& spec);

// An image to be written.
struct PromptImage {
  std::vector<std::byte> header;  // EncodeBlockHeader, EncodeStateHeader
  ByteSpan payload;
};

// A file ready to be written part by part, without a copy of any payload. The
// parts point into `header`, `padding`, the images and their payloads.
struct PromptFileParts {
  std::vector<std::byte> header;
  std::vector<std::byte> padding;  // zeros, shared by all gaps
  std::vector<PromptImage> images;
  std::vector<ByteSpan> parts;
};

// `images`: one for each entry, then one for each state; or none. Entries and
// states need their ids and ends alone. kInvalidArgument past the limits.
Result<PromptFileParts> EncodePromptFile(PromptHeader header,
                                         std::vector<PromptImage> images);

// Checks form and checksum; the images themselves are checked when one is used.
Result<PromptHeader> ParsePromptFile(ByteSpan file, const std::string& what);

// Whether the image with this header is the one that entry `index` names, by
// all ids and its place; its tokens are then those of its id.
Result<void> CheckEntry(const PromptHeader& prompt, std::size_t index,
                        const BlockHeader& image, const std::string& what);

// Whether the state with this header is the one that `header.states[index]`
// names.
Result<void> CheckStateEntry(const PromptHeader& prompt, std::size_t index,
                             const BlockHeader& image, const std::string& what);

// The file of entry `index` turned out to hold its block from `first_token` on,
// more than the entry says: drops the entries that it makes needless. Gives the
// entry's new index.
std::size_t DropCovered(PromptHeader& prompt, std::size_t index,
                        int first_token);

// Whether the bytes begin as a prompt file does.
bool LooksLikePromptFile(ByteSpan start);

}  // namespace hearth
