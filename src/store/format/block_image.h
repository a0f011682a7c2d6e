// A block as it lies in a file: header and payload (docs/formats/block.md).
// Works on memory only, so that the same code serves block files, bundles, a
// server's values and the fuzzer.
//
// An image may be a piece: it holds the keys and values of a block's tokens
// from `first_token` on, and stands behind the image whose id is that of the
// block's first `first_token` tokens (block_pieces.h joins them).
//
// Errors  kCorrupt: the bytes are damaged, or are not what the name promised.
//         kIncompatible: sound, but of another format version.
//         kUnsupported: sound, but with a required section of unknown kind.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/files/vault.h"
#include "base/hash.h"
#include "cache/block_chain.h"
#include "cache/kv_spec.h"
#include "hearth/result.h"
#include "store/format/block_format.h"

namespace hearth {

struct BlockSection {
  std::uint16_t kind = 0;  // a KvPart::Kind, or one of a later version
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
  std::vector<std::int32_t> tokens;  // of the block, those before it included
  std::vector<BlockSection> sections;
};

// What the reader wants: everything that must be equal before a byte of the
// payload may be used.
struct BlockQuery {
  Digest model_id, format_id, root_id, parent_id, block_id;
  std::span<const std::int32_t> tokens;
};

// The header of one image; the payload of tokens from `first_token` on follows
// it. Padded to kImageAlign for a whole block, to kPieceAlign for less.
// kInvalidArgument when sizes do not fit the spec.
Result<std::vector<std::byte>> EncodeBlockHeader(
    const KvIdentity& identity, const Digest& root_id, const KvSpec& spec,
    const Digest& parent_id, const Digest& block_id,
    std::span<const std::int32_t> tokens, ByteSpan payload, int first_token = 0,
    ByteSpan mac = {});

// What is written behind the payload of a block of which others must be able to
// tell that somebody with the key made it: kMacBytes over id and payload.
std::vector<std::byte> MakeBlockMac(const Vault& key, const Digest& block_id,
                                    int first_token, ByteSpan payload);

// The id of the key under which the image, whose header was parsed from it, has
// a MAC; nothing when it has none.
std::optional<Digest> MacKeyOf(ByteSpan image, const BlockHeader& header);

// kCorrupt unless the image, whose header was parsed from it, has the right MAC
// under this key.
Result<void> CheckBlockMac(ByteSpan image, const BlockHeader& header,
                           const Vault& key, const std::string& what);

// Block `index` of a chain.
BlockQuery QueryOf(const BlockChain& chain, std::size_t index);

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

// The id of what a piece stands behind. REQUIRES: first_token > 0.
Digest IdBefore(const BlockHeader& header);

// More than any image of a block, or a piece of one, of this layout has.
std::uint64_t ImageBytesMax(const KvSpec& spec);

struct OpenImage {
  ByteSpan payload;  // KvLayout(spec, n_tokens - first_token)
  int first_token = 0;
};

// Parses and checks the whole image, every section's checksum included unless
// `check_payload` is false.
Result<OpenImage> OpenBlockImage(ByteSpan image, const KvSpec& spec,
                                 const BlockQuery& query, bool check_payload,
                                 const std::string& what);

// Checksums of all sections of an image whose header has been parsed.
Result<void> CheckSections(ByteSpan image, const BlockHeader& header,
                           const std::string& what);

}  // namespace hearth
