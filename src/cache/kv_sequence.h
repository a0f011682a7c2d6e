// One sequence's KV cache: a block table over immutable blocks of a pool that
// it has in common with others.
//
// Only the last block, the tail, is ever written, and only while this sequence
// is its one owner: a shared or mapped tail is copied first (one block at
// most). Full blocks are sealed: they are shared with forks, with sequences
// that begin with the same tokens and with the writer of the store, and may be
// mappings of stored files. A quantised spec quantises a block when it is
// sealed.
//
// Threads  sequences of one pool may be used at the same time; one sequence, by
//          one thread at a time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/hash.h"
#include "cache/kv_layout.h"
#include "cache/kv_spec.h"
#include "cache/pool/block_pool.h"
#include "cache/states/state_slab.h"
#include "model/kv_port.h"

namespace hearth {

// Always reported as a pair: what attention reads, and what is resident for it.
struct KvUsage {
  std::uint64_t logical_bytes = 0;   // of the tokens that attention looks at
  std::uint64_t physical_bytes = 0;  // anonymous + mapped
  std::uint64_t mapped_bytes = 0;    // of them: shared with the page cache
  std::uint64_t shared_bytes = 0;    // of them: other sequences hold them, too
  std::uint64_t state_bytes = 0;     // of them: states, those kept included
  int populated_layers = 0;          // KV layers that hold tokens
};

// A block's bytes for the store, kept alive by `owner`.
struct BlockImage {
  ByteSpan payload;  // KvLayout(spec, n_tokens)
  int n_tokens = 0;
  std::shared_ptr<const void> owner;
};

class BlockTable;

// The verbs that every way of growing offers.
class KvSequence : public HostKvPort {
 public:
  virtual const KvSpec& spec() const = 0;
  int block_tokens() const final { return spec().block_tokens; }
  bool quantises() const final { return spec().quantised(); }

  // The most tokens, at most `n_tokens`, that the sequence can be cut to. Fewer
  // than asked for when a quantised block would be cut (its last tokens' floats
  // are gone: the block's start is left), when what the next position would
  // look at was let go of (0 is left), or when the states there are not known
  // (the last step's tokens, if they are few, and kept positions are).
  // REQUIRES: not more than there are.
  virtual int RewindableTo(int n_tokens) const = 0;
  // Drops the newest tokens until `n_tokens` are left. REQUIRES:
  // RewindableTo(n_tokens) == n_tokens.
  virtual void Rewind(int n_tokens) = 0;
  // Of a spec with states: the sequence can be cut back to where it is now, for
  // as long as it has not been cut further, and a few such positions at most.
  // Gives the position; null without states, and before the first token.
  virtual StateCheckpointPtr KeepState() = 0;
  // Such positions, rising.
  virtual std::vector<StateCheckpointPtr> KeptStates() const = 0;
  // The states are these from now on, and the one position that is kept. After
  // blocks were appended to a sequence of a spec with states this comes next.
  // REQUIRES: they are those at n_tokens(); no step is running.
  virtual void RestoreState(StateCheckpointPtr here) = 0;
  // A second sequence with the same tokens; sealed blocks are shared. Errors
  // as Extend.
  virtual Result<std::unique_ptr<KvSequence>> Fork() const = 0;
  // Appends a stored block behind the last full one. A full block is taken as
  // it is (or copied, by the concat reference); a partial one is copied.
  // `mapped`: the system can drop and read it again. REQUIRES:
  // n_tokens() is a multiple of block_tokens; payload has KvLayout(spec,
  // n_tokens).block_bytes() bytes.
  virtual Result<void> AppendStored(ByteSpan payload, int n_tokens,
                                    std::shared_ptr<const void> owner,
                                    bool mapped = true) = 0;

  // --- What sequences of one pool have in common ----------------------------
  // (The concat reference has nothing in common with anybody.)
  //
  // Names the full blocks: ids[i] is the chain id of block i. From now on other
  // sequences find them, and blocks that another one has already are held in
  // common with it. REQUIRES: no step is running.
  virtual void Publish(std::span<const Digest> ids) = 0;
  // Appends the blocks that the pool holds under these ids, as far as they go;
  // ids[0] is the sequence's first block. Gives how many. REQUIRES: n_tokens()
  // is a multiple of block_tokens.
  virtual int AppendShared(std::span<const Digest> ids) = 0;
  // The full block `block`, whose id is `id`, is from now on the mapping of
  // what was stored of it, so that its memory is free once nobody else holds
  // it. REQUIRES: the same bytes; no step is running.
  virtual void Exchange(int block, const Digest& id, ByteSpan payload,
                        std::shared_ptr<const void> owner) = 0;
  // Whether there is nothing to gain from an exchange.
  virtual bool IsMapped(int block) const = 0;
  // Has the pool promise the memory for growing to `n_tokens`, so that no step
  // until then fails for want of it, whatever other sequences do. Takes the
  // place of the promise before; at most n_tokens(): of none. Gives 0, or the
  // bytes that are missing; then nothing has changed.
  virtual std::uint64_t Reserve(int n_tokens) = 0;
  // Its blocks, for figures of the pool; null when it has none of a pool. And
  // the bytes of a tail that is no block yet, and of states that are nobody
  // else's.
  virtual const BlockTable* table() const = 0;
  virtual std::uint64_t TailBytes() const = 0;

  // Whether Image can give them: not when some of the block was let go of, or
  // when it is part of a block that was quantised.
  virtual bool HasImage(int block, int n) const = 0;
  // The bytes of block `block`'s first `n` tokens: a full block is shared, of a
  // partial one only these tokens are copied out. kIo when a device that has
  // the newest of them has failed. REQUIRES: HasImage.
  virtual Result<BlockImage> Image(int block, int n) const = 0;

  // Only blocks that end within the first `n_tokens` may be let go of: the rest
  // is still wanted, for a save. At first, all may.
  virtual void SetReleasable(int n_tokens) = 0;

  virtual KvUsage Usage() const = 0;
  int n_blocks() const {
    return (n_tokens() + block_tokens() - 1) / block_tokens();
  }
};

struct KvRoom {
  int n_blocks = 1;             // that one sequence may need at once
  bool preallocate = false;     // these are faulted in now
  std::uint64_t bytes_max = 0;  // of memory, of all sequences; 0: no limit
};
// The pool for all sequences of this spec. kResourceFull.
Result<std::shared_ptr<BlockPool>> MakeKvPool(const KvSpec& spec,
                                              const KvRetention& retention,
                                              const KvRoom& room);

// An empty sequence that grows in place; the product's way. REQUIRES: the pool
// was made for this spec and retention.
std::unique_ptr<KvSequence> MakeInPlaceSequence(
    std::shared_ptr<BlockPool> pool, const KvSpec& spec,
    const KvRetention& retention = {});

// The reference that the in-place way is checked against: one buffer per layer
// that is allocated anew and copied at every append, as the seed did. Lets go
// of nothing. REQUIRES: spec is not quantised.
std::unique_ptr<KvSequence> MakeConcatSequence(const KvSpec& spec,
                                               int n_tokens_max);

}  // namespace hearth
