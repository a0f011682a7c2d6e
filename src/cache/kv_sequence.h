// One sequence's KV cache: a block table over immutable blocks.
//
// Only the last block, the tail, is ever written, and only while this sequence
// is its one owner: a shared or mapped tail is copied first (one block at
// most). Full blocks are sealed: they are shared with forks and with the
// writer of the store, and may be mappings of stored files. A quantised spec
// quantises a block when it is sealed.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "cache/kv_layout.h"
#include "cache/kv_spec.h"
#include "model/kv_port.h"

namespace hearth {

// Always reported as a pair: what attention reads, and what is resident for it.
struct KvUsage {
  std::uint64_t logical_bytes = 0;   // of the tokens that attention looks at
  std::uint64_t physical_bytes = 0;  // anonymous + mapped
  std::uint64_t mapped_bytes = 0;    // of them: shared with the page cache
  int populated_layers = 0;          // KV layers that hold tokens
};

// A block's bytes for the store, kept alive by `owner`.
struct BlockImage {
  ByteSpan payload;  // KvLayout(spec, n_tokens)
  int n_tokens = 0;
  std::shared_ptr<const void> owner;
};

// The verbs that every way of growing offers.
class KvSequence : public KvPort {
 public:
  virtual const KvSpec& spec() const = 0;
  int block_tokens() const final { return spec().block_tokens; }
  bool quantises() const final { return spec().quantised(); }

  // The most tokens, at most `n_tokens`, that the sequence can be cut to. Fewer
  // than asked for when a quantised block would be cut (its last tokens' floats
  // are gone: the block's start is left) or when what the next position would
  // look at was let go of (0 is left). REQUIRES: not more than there are.
  virtual int RewindableTo(int n_tokens) const = 0;
  // Drops the newest tokens until `n_tokens` are left. REQUIRES:
  // RewindableTo(n_tokens) == n_tokens.
  virtual void Rewind(int n_tokens) = 0;
  // A second sequence with the same tokens; sealed blocks are shared. Errors
  // as Extend.
  virtual Result<std::unique_ptr<KvSequence>> Fork() const = 0;
  // Appends a stored block behind the last full one. A full block is mapped in
  // (or copied, by the concat reference); a partial one is copied. REQUIRES:
  // n_tokens() is a multiple of block_tokens; payload has
  // KvLayout(spec, n_tokens).block_bytes() bytes.
  virtual Result<void> AppendStored(ByteSpan payload, int n_tokens,
                                    std::shared_ptr<const void> owner) = 0;
  // Whether Image can give them: not when some of the block was let go of, or
  // when it is part of a block that was quantised.
  virtual bool HasImage(int block, int n) const = 0;
  // The bytes of block `block`'s first `n` tokens: a full block is shared, of a
  // partial one only these tokens are copied out. REQUIRES: HasImage.
  virtual BlockImage Image(int block, int n) const = 0;

  // Only blocks that end within the first `n_tokens` may be let go of: the rest
  // is still wanted, for a save. At first, all may.
  virtual void SetReleasable(int n_tokens) = 0;

  virtual KvUsage Usage() const = 0;
  int n_blocks() const {
    return (n_tokens() + block_tokens() - 1) / block_tokens();
  }
};

// Grows in place; the product's way. Room for `n_blocks` blocks in memory at
// once, and for `n_spare` that it has dropped while others still hold them:
// address space is reserved now, memory taken as it is written, or now with
// `preallocate`.
Result<std::unique_ptr<KvSequence>> MakeInPlaceSequence(
    const KvSpec& spec, int n_blocks, bool preallocate,
    const KvRetention& retention = {}, int n_spare = 0);

// The reference that the in-place way is checked against: one buffer per layer
// that is allocated anew and copied at every append, as the seed did. Lets go
// of nothing. REQUIRES: spec is not quantised.
std::unique_ptr<KvSequence> MakeConcatSequence(const KvSpec& spec,
                                               int n_tokens_max);

}  // namespace hearth
