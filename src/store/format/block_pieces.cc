#include "store/format/block_pieces.h"

#include <cstdlib>
#include <cstring>
#include <memory>

#include "base/check.h"
#include "cache/kv_layout.h"
#include "cache/tile_copy.h"

namespace hearth {
namespace {

constexpr std::size_t kPageBytes = 4096;

}  // namespace

bool CanBePiece(const KvSpec& spec, std::size_t n_tokens) {
  return !spec.quantised() ||
         n_tokens < static_cast<std::size_t>(spec.block_tokens);
}

std::vector<std::byte> CutPiece(const KvSpec& spec, ByteSpan payload,
                                int n_tokens, int first) {
  const KvLayout whole(spec, n_tokens), piece(spec, n_tokens - first);
  std::vector<std::byte> bytes(piece.block_bytes());
  CopyBlockTokens(spec, whole, payload.data(), first, piece, bytes.data(), 0,
                  n_tokens - first);
  return bytes;
}

Result<FileBytes> CutStart(const KvSpec& spec, ByteSpan payload,
                           int n_tokens_of_block, int n_tokens) {
  const KvLayout whole(spec, n_tokens_of_block), start(spec, n_tokens);
  HEARTH_ASSIGN(const auto bytes, PageAligned(start.block_bytes()));
  CopyBlockTokens(spec, whole, payload.data(), 0, start, bytes.get(), 0,
                  n_tokens);
  return FileBytes{{bytes.get(), start.block_bytes()}, bytes};
}

bool WaitsForMore(const KvSpec& spec, int n_new_tokens, int n_last_piece) {
  // Of two neighbours one is at least this long, so that kBlockPiecesMax pieces
  // are enough for any block.
  const int small = spec.block_tokens / 8;
  return n_new_tokens < small && n_last_piece < small;
}

Result<FileBytes> JoinPieces(const KvSpec& spec,
                             std::span<const Piece> pieces) {
  const KvLayout whole(spec, pieces.back().end);
  HEARTH_ASSIGN(const auto bytes, PageAligned(whole.block_bytes()));
  int at = 0;
  for (const Piece& piece : pieces) {
    HEARTH_CHECK(piece.first == at && piece.end > at);
    CopyBlockTokens(spec, KvLayout(spec, piece.end - piece.first),
                    piece.payload.data(), 0, whole, bytes.get(), piece.first,
                    piece.end - piece.first);
    at = piece.end;
  }
  return FileBytes{{bytes.get(), whole.block_bytes()}, bytes};
}

Result<std::shared_ptr<std::byte>> PageAligned(std::size_t n_bytes) {
  const std::size_t room = (n_bytes / kPageBytes + 1) * kPageBytes;
  std::shared_ptr<std::byte> bytes(
      static_cast<std::byte*>(std::aligned_alloc(kPageBytes, room)), std::free);
  if (bytes == nullptr) return {Code::kResourceFull, "no memory for a block"};
  std::memset(bytes.get(), 0, room);
  return bytes;
}

}  // namespace hearth
