// A prompt file: the tokens of one prompt, the chain of its block ids, and the
// images of some or all of its blocks (docs/formats/manifest.md). As a manifest
// in a store it carries only the partial tail; as a bundle it carries all.
// Works on memory only.
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
#include "hearth/result.h"
#include "store/kv_identity.h"

namespace hearth {

inline constexpr std::array<char, 8> kPromptMagic = {'H',  'K',  'V',    'P',
                                                     '\r', '\n', '\x1a', '\n'};
inline constexpr std::uint32_t kPromptVersion = 1;

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
inline constexpr std::size_t kPromptBlockCountAt = 136;
inline constexpr std::size_t kPromptNameBytesAt = 140;
inline constexpr std::size_t kPromptTokensAt = 256;  // i32[n_tokens]
inline constexpr std::size_t kPromptEntryBytes = 48;

// Limits, checked before anything is allocated.
inline constexpr std::uint32_t kPromptTokensMax = 1 << 26;
inline constexpr std::uint32_t kPromptNameBytesMax = 255;

struct PromptEntry {
  Digest id;
  std::uint64_t image_at = 0;     // from the file's start; 0: in blocks/
  std::uint64_t image_bytes = 0;  // 0 when not in this file
};

struct PromptHeader {
  Digest model_id, format_id, root_id;
  int block_tokens = 0;
  std::string model_name;
  std::vector<std::int32_t> tokens;
  std::vector<PromptEntry> blocks;  // ceil(n_tokens / block_tokens)

  // Tokens [first, first + count) of block `index`.
  std::span<const std::int32_t> BlockTokens(std::size_t index) const;
  const Digest& ParentOf(std::size_t index) const {
    return index == 0 ? root_id : blocks[index - 1].id;
  }
};

// An image to be written: its header (EncodeBlockHeader) and its payload.
struct PromptImage {
  std::size_t index = 0;  // of the block
  std::vector<std::byte> header;
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

// `images` in ascending order of index. `header.blocks` needs only the ids.
// kInvalidArgument past the limits.
Result<PromptFileParts> EncodePromptFile(PromptHeader header,
                                         std::vector<PromptImage> images);

// Checks form, checksum and the chain of ids; the images themselves are checked
// when one is used (OpenBlockImage).
Result<PromptHeader> ParsePromptFile(ByteSpan file, const std::string& what);

// Whether the bytes begin as a prompt file does.
bool LooksLikePromptFile(ByteSpan start);

}  // namespace hearth
