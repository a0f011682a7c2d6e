// A block as it lies in a file: header and payload (docs/formats/block.md).
// Works on memory only, so that the same code serves block files, the tail
// inside a manifest, bundles and the fuzzer.
//
// Errors  kCorrupt: the bytes are damaged, or are not what the name promised.
//         kIncompatible: sound, but of another format version.
//         kUnsupported: sound, but with a required section of unknown kind.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/hash.h"
#include "cache/kv_spec.h"
#include "hearth/result.h"
#include "store/block_format.h"
#include "store/kv_identity.h"

namespace hearth {

struct BlockSection {
  std::uint16_t kind = 0;  // a SectionKind, or one of a later version
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
  std::vector<std::int32_t> tokens;
  std::vector<BlockSection> sections;
};

// What the reader wants: everything that must be equal before a byte of the
// payload may be used.
struct BlockQuery {
  Digest model_id, format_id, root_id, parent_id, block_id;
  std::span<const std::int32_t> tokens;
};

// The header of one image, padded to kImageAlign; the payload follows it.
// kInvalidArgument when sizes do not fit the spec.
Result<std::vector<std::byte>> EncodeBlockHeader(
    const KvIdentity& identity, const Digest& root_id, const KvSpec& spec,
    const Digest& parent_id, const Digest& block_id,
    std::span<const std::int32_t> tokens, ByteSpan payload);

// How long the header says it is; 0 when `start` is too short to say.
// A claim, unchecked.
std::size_t StatedHeaderBytes(ByteSpan start);

// Checks form and checksum of the header at the start of `bytes`; looks at no
// payload. `image_bytes` is the image's real length; `what` names it.
Result<BlockHeader> ParseBlockHeader(ByteSpan bytes, std::uint64_t image_bytes,
                                     const std::string& what);

// Checks that the header is the one asked for and its id that of its content.
Result<void> CheckBlockHeader(const BlockHeader& header,
                              const BlockQuery& query, const std::string& what);

// Parses and checks the whole image, every section's checksum included unless
// `check_payload` is false. Gives the keys and values: KvLayout(spec,
// n_tokens).
Result<ByteSpan> OpenBlockImage(ByteSpan image, const KvSpec& spec,
                                const BlockQuery& query, bool check_payload,
                                const std::string& what);

// Checksums of all sections of an image whose header has been parsed.
Result<void> CheckSections(ByteSpan image, const BlockHeader& header,
                           const std::string& what);

}  // namespace hearth
