// A block that was written in pieces, as a conversation grew into it: each
// piece holds the tokens that its save added, so that no token is written
// twice. docs/decisions/0027-tails-are-never-rewritten.md.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "base/files/vault.h"
#include "cache/kv_spec.h"
#include "hearth/result.h"

namespace hearth {

// Pieces of one block at most: more files would make reading it slow.
inline constexpr int kBlockPiecesMax = 16;

// What is added to a block that ends in a piece this short waits until it is
// longer itself: else tokens that come one by one would each bring a file with
// a header. docs/decisions/0031-small-growth-waits.md.
bool WaitsForMore(const KvSpec& spec, int n_new_tokens, int n_last_piece);

// Whether a block of n_tokens may be written as a piece behind its first
// tokens. A quantised block cannot: its tail was kept in full precision.
bool CanBePiece(const KvSpec& spec, std::size_t n_tokens);

// The payload of tokens [first, n_tokens) of a block.
// REQUIRES: payload is KvLayout(spec, n_tokens); CanBePiece; 0 <= first <
// n_tokens.
std::vector<std::byte> CutPiece(const KvSpec& spec, ByteSpan payload,
                                int n_tokens, int first);

// The first `n_tokens` of a block's payload, in memory. REQUIRES: as CutPiece.
Result<FileBytes> CutStart(const KvSpec& spec, ByteSpan payload,
                           int n_tokens_of_block, int n_tokens);

struct Piece {
  ByteSpan payload;  // KvLayout(spec, end - first)
  int first = 0, end = 0;
};

// The pieces, which follow each other from token 0 to the last one's end, as
// one payload in memory. kResourceFull without memory for it.
Result<FileBytes> JoinPieces(const KvSpec& spec, std::span<const Piece> pieces);

// Zeroed memory that begins on a page, as a mapped file does.
Result<std::shared_ptr<std::byte>> PageAligned(std::size_t n_bytes);

}  // namespace hearth
