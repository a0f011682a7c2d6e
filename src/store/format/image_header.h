// The header that images of blocks and of states have: ids, tokens, and
// sections that tile the payload. Works on memory only.
//
// Errors  as block_image.h.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "hearth/result.h"
#include "store/format/block_format.h"

namespace hearth {

enum class ImageKind { kBlock, kState };

struct BlockSection {
  std::uint16_t kind =
      0;  // a KvPart::Kind, kStateSection, or of a later version
  std::uint16_t flags = 0;
  std::uint32_t layer = 0;
  std::uint64_t offset = 0;  // from the payload's start
  std::uint64_t length = 0;
  std::uint64_t checksum = 0;  // XXH3-64 of the section's bytes
};

struct BlockHeader {
  Digest model_id, format_id, root_id, parent_id, block_id;
  std::uint64_t header_bytes = 0;
  std::uint64_t payload_bytes = 0;
  int first_token = 0;               // of the payload
  std::uint64_t position = 0;        // of a state: tokens of the whole prefix
  std::vector<std::int32_t> tokens;  // of the block, those before it included
  std::vector<BlockSection> sections;
};

// What the reader wants: everything that must be equal before a byte of the
// payload may be used.
struct BlockQuery {
  Digest model_id, format_id, root_id, parent_id, block_id;
  std::span<const std::int32_t> tokens;
};

// The bytes of a header, whose checksums of sections are made here, and of
// which header_bytes and payload_bytes are not read. `mac`: empty, or what is
// written behind the payload, as a section of its own.
std::vector<std::byte> EncodeImageHeader(ImageKind kind, std::uint32_t version,
                                         BlockHeader header, ByteSpan payload,
                                         ByteSpan mac);

// Checks form and checksum of the header at the start of `bytes`; looks at no
// payload. `image_bytes` is the image's real length; `what` names it.
Result<BlockHeader> ParseImageHeader(ImageKind kind, ByteSpan bytes,
                                     std::uint64_t image_bytes,
                                     const std::string& what);

// How long the header says it is; 0 when `start` is too short to say.
// A claim, unchecked.
std::size_t StatedHeaderBytes(ByteSpan start);

// Checks that the header is the one asked for and its id that of its content.
Result<void> CheckBlockHeader(const BlockHeader& header,
                              const BlockQuery& query, const std::string& what);

// Checksums of all sections of an image whose header has been parsed.
Result<void> CheckSections(ByteSpan image, const BlockHeader& header,
                           const std::string& what);

// That the known sections of the header are these, in order; others must not be
// required. kUnsupported, kCorrupt.
Result<void> CheckSectionsAre(ImageKind kind, const BlockHeader& header,
                              std::span<const BlockSection> expected,
                              const std::string& what);

}  // namespace hearth
