// The states of one sequence: where its newest token left them, and at a few
// positions before that it can be cut back to.
//
// A step reads one slab, all states at one position, and writes another, which
// Commit puts in its place. A slab is never written after that: forks and kept
// positions hold it in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "cache/kv_spec.h"
#include "cache/pool/block_pool.h"
#include "cache/states/state_layout.h"
#include "cache/states/state_slab.h"
#include "hearth/result.h"
#include "model/state_port.h"

namespace hearth {

class SequenceStates final : public StatePort {
 public:
  // Steps of so few tokens keep a journal, so that the sequence can be cut back
  // to any of them: what speculation does at every step.
  static constexpr int kJournalTokens = 32;
  // Positions that Keep remembers; beyond them, every second of the older ones
  // goes.
  static constexpr std::size_t kKeptMax = 8;

  // Zeros, at token 0. `pool` counts the memory; null: nobody does.
  explicit SequenceStates(const KvSpec& spec,
                          std::shared_ptr<BlockPool> pool = nullptr);

  bool empty() const { return shapes_.empty(); }

  // --- A step of n_new tokens behind n_tokens -------------------------------
  // Memory is of what was promised, as long as that lasts; where the pool has
  // none, positions that were kept give theirs. kResourceFull; then nothing
  // else has changed.
  Result<void> Begin(int n_tokens, int n_new, BlockPromise& promise);
  Result<void> Begin(int n_tokens, int n_new) {
    BlockPromise none;
    return Begin(n_tokens, n_new, none);
  }
  void Commit();
  void Abandon();
  const float* Read(int state) const override;
  float* Write(int state) override;
  float* Journal(int state) override;

  // As the newest token left them; null before the first.
  const std::shared_ptr<const StateSlab>& live() const { return live_; }
  // Takes the place of all that was known.
  // REQUIRES: `here` is of n_tokens.
  void Restore(int n_tokens, StateCheckpointPtr here);

  // The current position can be cut back to from now on, until it is cut off or
  // thinned out. `tail` gives what StateCheckpoint has of it. Null without
  // states, and before the first token.
  StateCheckpointPtr Keep(const std::function<StateTail()>& tail);
  StateCheckpointPtr Keep() {
    return Keep([] { return StateTail(); });
  }
  // Rising.
  const std::vector<StateCheckpointPtr>& kept() const { return kept_; }
  // The largest position, at most `n_tokens`, that the states are known at.
  int RewindableTo(int n_tokens) const;
  // REQUIRES: RewindableTo(n_tokens) == n_tokens.
  void Rewind(int n_tokens);
  // With the same states; the journal stays behind.
  SequenceStates Fork() const;

  // Of the live states, those kept and the journal; what forks hold in common
  // counts for each.
  std::uint64_t held_bytes() const;
  // Of memory that is free when the sequence lets go of everything.
  std::uint64_t own_bytes() const;
  // Bytes that steps from now on take of the pool at most, but for positions
  // that are kept meanwhile.
  std::uint64_t wanted_bytes() const;

 private:
  bool CanWriteOver(const std::shared_ptr<const StateSlab>& slab) const {
    return slab != nullptr && slab.use_count() == 1 && slab->is_memory();
  }
  std::vector<const StateSlab*> Slabs() const;
  Result<std::shared_ptr<StateSlab>> NewSlab(BlockPromise& promise);
  std::size_t JournalFloats(int n_rows) const;
  void Replay(int n_rows, StateSlab& to) const;

  std::vector<StateShape> shapes_;
  StateLayout layout_;
  std::shared_ptr<BlockPool> pool_;  // may be null

  int n_tokens_ = 0;
  std::shared_ptr<const StateSlab> live_;  // null: zeros, at token 0
  std::vector<StateCheckpointPtr> kept_;   // rising, up to n_tokens_

  // The last step: what it started from, and its journal's rows, 0 without.
  std::shared_ptr<const StateSlab> before_;
  int n_before_ = 0;
  int n_journal_ = 0;
  std::vector<float> journal_;

  std::shared_ptr<StateSlab> next_;  // between Begin and Commit
  int n_new_ = 0;
  // To be written next; there while a journal is, which may be replayed to it.
  std::shared_ptr<StateSlab> spare_;
};

}  // namespace hearth
