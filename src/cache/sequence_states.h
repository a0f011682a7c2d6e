// The states of one sequence: where its newest token left them, and at a few
// positions before that it can be cut back to.
//
// A step reads one slab, all states at one position, and writes another, which
// Commit puts in its place. A slab is never written after that: forks and kept
// positions hold it in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/kv_spec.h"
#include "hearth/result.h"
#include "model/cpu/aligned_buffer.h"
#include "model/state_port.h"

namespace hearth {

// All states at one position, each on 64 bytes.
class StateSlab {
 public:
  const float* data() const { return memory_.GetFloats(n_floats_); }
  std::size_t bytes() const { return n_floats_ * sizeof(float); }

 private:
  friend class SequenceStates;
  AlignedBuffer memory_;
  std::size_t n_floats_ = 0;
};

class SequenceStates final : public StatePort {
 public:
  // Steps of so few tokens keep a journal, so that the sequence can be cut back
  // to any of them: what speculation does at every step.
  static constexpr int kJournalTokens = 32;
  // Positions that Keep remembers; beyond them, every second of the older ones
  // goes.
  static constexpr std::size_t kKeptMax = 8;

  // Zeros, at token 0.
  explicit SequenceStates(const KvSpec& spec);

  bool empty() const { return shapes_.empty(); }

  // --- A step of n_new tokens behind n_tokens
  // --------------------------------- kResourceFull; then nothing has changed.
  Result<void> Begin(int n_tokens, int n_new);
  void Commit();
  void Abandon();
  const float* Read(int state) const override;
  float* Write(int state) override;
  float* Journal(int state) override;

  // The current position can be cut back to from now on, until it is cut off
  // or thinned out.
  void Keep();
  // The largest position, at most `n_tokens`, that the states are known at.
  int RewindableTo(int n_tokens) const;
  // REQUIRES: RewindableTo(n_tokens) == n_tokens.
  void Rewind(int n_tokens);
  // With the same states; the journal stays behind.
  SequenceStates Fork() const;

  // Of the live states, those kept and the journal; what forks hold in common
  // counts for each.
  std::uint64_t held_bytes() const;

 private:
  struct Kept {
    int n_tokens;
    std::shared_ptr<const StateSlab> slab;
  };

  Result<std::shared_ptr<StateSlab>> NewSlab();
  std::size_t JournalFloats(int n_rows) const;
  void Replay(int n_rows, StateSlab& to) const;

  std::vector<StateShape> shapes_;
  std::vector<std::size_t> offsets_;  // floats in a slab
  std::size_t n_floats_ = 0;

  int n_tokens_ = 0;
  std::shared_ptr<const StateSlab> live_;  // null: zeros, at token 0
  std::vector<Kept> kept_;                 // rising positions, below n_tokens_

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
