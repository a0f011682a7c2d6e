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
#include "store/format/image_header.h"

namespace hearth {

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

// The MAC of an image, whose header was parsed from it; empty without one.
ByteSpan MacOf(ByteSpan image, const BlockHeader& header);
// In a time that does not tell how much of it is right.
bool EqualMacs(ByteSpan a, ByteSpan b);

// The id of the key under which the image, whose header was parsed from it, has
// a MAC; nothing when it has none.
std::optional<Digest> MacKeyOf(ByteSpan image, const BlockHeader& header);

// kCorrupt unless the image, whose header was parsed from it, has the right MAC
// under this key.
Result<void> CheckBlockMac(ByteSpan image, const BlockHeader& header,
                           const Vault& key, const std::string& what);

// Block `index` of a chain.
BlockQuery QueryOf(const BlockChain& chain, std::size_t index);

// Checks form and checksum of the header at the start of `bytes`; looks at no
// payload. `image_bytes` is the image's real length; `what` names it.
Result<BlockHeader> ParseBlockHeader(ByteSpan bytes, std::uint64_t image_bytes,
                                     const std::string& what);

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

}  // namespace hearth
