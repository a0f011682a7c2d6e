// Constants of the block image, and of the state image, which has the same
// header. The page that explains them, with a worked
// example that a test holds against this header: docs/formats/block.md.
//
//   image    := header payload
//   header   := fixed tokens sections zeros ; header_bytes in all
//   payload  := section* ; back to back, nothing between them
//
// Version 1 is a whole block of block_tokens tokens, which is mapped; version 2
// a piece of one, which is copied when it is read.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace hearth {

// A text-mode copy changes the line ends and so breaks it visibly.
inline constexpr std::array<char, 8> kBlockMagic = {'H',  'K',  'V',    'B',
                                                    '\r', '\n', '\x1a', '\n'};
// Of a state: docs/formats/state.md.
inline constexpr std::array<char, 8> kStateMagic = {'H',  'K',  'V',    'R',
                                                    '\r', '\n', '\x1a', '\n'};
inline constexpr std::uint32_t kBlockVersion = 1;
inline constexpr std::uint32_t kPieceVersion = 2;
inline constexpr std::uint32_t kStateVersion = 1;

// Images and their payloads start on this boundary, so that both can be mapped
// and every tile is aligned for vector loads.
inline constexpr std::size_t kImageAlign = 4096;
// A piece's header is padded to this: it is copied, so its tiles need no pages.
inline constexpr std::size_t kPieceAlign = 64;

// Offsets of the fixed part. Never reused for another meaning.
inline constexpr std::size_t kBlockMagicAt = 0;
inline constexpr std::size_t kBlockChecksumAt = 8;  // of [16, header_bytes)
inline constexpr std::size_t kBlockVersionAt = 16;
inline constexpr std::size_t kBlockHeaderBytesAt = 20;
inline constexpr std::size_t kBlockTokenCountAt = 24;
inline constexpr std::size_t kBlockSectionCountAt = 28;
inline constexpr std::size_t kBlockModelIdAt = 32;
inline constexpr std::size_t kBlockFormatIdAt = 64;
inline constexpr std::size_t kBlockRootIdAt = 96;
inline constexpr std::size_t kBlockParentIdAt = 128;
inline constexpr std::size_t kBlockIdAt = 160;
inline constexpr std::size_t kBlockPayloadBytesAt = 192;
inline constexpr std::size_t kBlockFirstTokenAt = 200;  // version 2 only
inline constexpr std::size_t kStatePositionAt = 208;    // states only
inline constexpr std::size_t kBlockTokensAt = 256;      // i32[n_tokens]
// Sections follow the tokens at the next multiple of 8.

inline constexpr std::size_t kSectionBytes = 32;

// One state of a state image. Other kinds are a KvPart's.
inline constexpr std::uint16_t kStateSection = 3;
// Who computed the block: key id and MAC (block.md). Not required: who has no
// key goes without.
inline constexpr std::uint16_t kMacSection = 0x4d41;
inline constexpr std::size_t kMacBytes = 64;

// A reader that does not know the kind of a section with this flag must refuse
// the block; without it, it goes on as if the section were not there.
inline constexpr std::uint16_t kSectionRequired = 1;

// Limits, checked before anything is allocated.
inline constexpr std::uint32_t kBlockTokensMax = 1 << 16;
inline constexpr std::uint32_t kBlockSectionsMax = 1 << 16;
// What these add up to, and a whole image whose layout is not known.
inline constexpr std::size_t kBlockHeaderBytesMax = std::size_t{4} << 20;
inline constexpr std::uint64_t kPositionMax = 1 << 26;  // of a prompt
inline constexpr std::uint64_t kImageBytesMax = std::uint64_t{1} << 40;

}  // namespace hearth
