// The states of a sequence at one position as they lie in a file: header and
// payload (docs/formats/state.md). Works on memory only.
//
// Errors  as block_image.h.
#pragma once

#include <cstddef>
#include <cstdint>
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

// What a reader wants: the prefix that the states are behind.
struct StateQuery {
  BlockQuery prefix;  // its last block, which may be partial
  std::uint64_t position = 0;
};

// Of the first `n_tokens` of a chain. REQUIRES: 1 <= n_tokens, and the chain
// has as many. Points into the chain.
StateQuery StateQueryOf(const BlockChain& chain, std::size_t n_tokens);

// The header of an image whose payload, StateLayout(spec.states).bytes(),
// follows it. kInvalidArgument when that is not its length.
Result<std::vector<std::byte>> EncodeStateHeader(const KvSpec& spec,
                                                 const StateQuery& query,
                                                 ByteSpan payload,
                                                 ByteSpan mac = {});

// What is written behind the payload for others to tell that somebody with the
// key made it: kMacBytes.
std::vector<std::byte> MakeStateMac(const Vault& key, const StateQuery& query,
                                    ByteSpan payload);
// kCorrupt unless the image, whose header was parsed from it, has the right
// one.
Result<void> CheckStateMac(ByteSpan image, const BlockHeader& header,
                           const Vault& key, const std::string& what);

Result<BlockHeader> ParseStateHeader(ByteSpan bytes, std::uint64_t image_bytes,
                                     const std::string& what);

// Checks that the header is the one asked for and its id that of its content.
Result<void> CheckStateHeader(const BlockHeader& header,
                              const StateQuery& query, const std::string& what);

// The whole image, every section's checksum included unless `check_payload` is
// false. Gives the payload.
Result<ByteSpan> OpenStateImage(ByteSpan image, const KvSpec& spec,
                                const StateQuery& query, bool check_payload,
                                const std::string& what);

// More than any image of a state of this spec has.
std::uint64_t StateImageBytesMax(const KvSpec& spec);

// Under what a server keeps it: a block at the same place has its own id.
Digest RemoteStateId(const Digest& id);

}  // namespace hearth
