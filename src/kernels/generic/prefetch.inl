// What a kernel fetches from memory ahead of what it reads. Into the
// second-level cache: into the first (hint 3) reading from memory took twice as
// long.

HEARTH_INLINE void PrefetchBytes(const std::byte* p, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += 64) __builtin_prefetch(p + i, 0, 2);
}

// --- Block formats, few rows
// --------------------------------------------------- A tile below this is done
// before memory has answered for the next.
inline constexpr std::int64_t kLongTileBytes = 32 << 10;

// Tiles, some rows each, lie one behind the other and are swept in step: bytes
// from the tile that is read to the one that is fetched.
constexpr std::int64_t SweepAhead(std::int64_t tile_bytes) {
  return tile_bytes < kLongTileBytes ? 2 * tile_bytes : tile_bytes;
}

// --- KV tiles
// ----------------------------------------------------------------- A tile is
// fetched while the one before is worked on, line by line as its own lines are
// read: the hardware's prefetchers stop at the end of a page and see too little
// of a tile to run ahead.

// The address in the next tile of what lies at `at` in this one; without a next
// tile `at` itself.
HEARTH_INLINE const std::byte* NextOf(const std::byte* tile,
                                      const std::byte* next,
                                      const std::byte* at) {
  return next == nullptr ? at : next + (at - tile);
}
