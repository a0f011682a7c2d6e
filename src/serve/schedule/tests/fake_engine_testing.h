// An engine that only counts: blocks, bytes, passes and a clock of its own. An
// answer's tokens are a function of its prompt and its seed, so that every
// answer can be checked whatever happened on the way.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "serve/schedule/backend.h"

namespace hearth::serve {

struct FakeOptions {
  int block_tokens = 16;
  int budget_blocks = 0;  // 0: no limit
  bool store = true;
  double base_ms = 5, decode_row_ms = 1, prefill_row_ms = 1;
  double save_ms = 3;        // a block
  double save_fault = 0;     // that a block is lost
  int queue_blocks = 64;     // that wait to be saved at most
  int guesses = 0;           // of an answer's step at most
  double draft_row_ms = 0;   // a draft model reads prompts; 0: none does
  std::int32_t poison = -1;  // a prompt with it cannot be computed
};

inline std::uint64_t Mix(std::uint64_t a, std::uint64_t b) {
  a ^= b + 0x9e3779b97f4a7c15u + (a << 6) + (a >> 2);
  a ^= a >> 31;
  return a * 0xbf58476d1ce4e5b9u;
}

class FakeEngine;

struct FakeBlock {
  FakeBlock(FakeEngine& of, std::uint64_t with_id);
  ~FakeBlock();
  FakeBlock(const FakeBlock&) = delete;
  FakeBlock& operator=(const FakeBlock&) = delete;
  void Map();
  FakeEngine& engine;
  std::uint64_t id;
  bool mapped = false;
};
using FakeBlockPtr = std::shared_ptr<FakeBlock>;

// What the store has of a prompt.
struct FakeFound final : Found {
  std::vector<std::uint64_t> ids;
};

class FakeSequence final : public Sequence {
 public:
  explicit FakeSequence(FakeEngine& engine, std::uint64_t root);
  ~FakeSequence() override;
  int Held(std::span<const std::int32_t> tokens) override;
  Result<SyncReport> Attach(std::span<const std::int32_t> tokens,
                            std::unique_ptr<Found> found,
                            std::span<const int> marks) override;
  int NextStop() override { return 1 << 30; }
  bool AddStop(int) override { return true; }
  Result<void> Reserve(int n_tokens, Relief relief) override;
  Result<std::unique_ptr<Generation>> Begin(
      const GenerateOptions& options,
      const Session::OnToken& on_token) override;
  Result<std::unique_ptr<Sequence>> Fork() override;
  bool TryPersist(bool rests) override;
  void Rest() override;
  std::vector<std::int32_t> tokens() override { return tokens_; }
  int n_tokens() override { return static_cast<int>(tokens_.size()); }
  KvReport Usage() override {
    return {.tokens = n_tokens(), .saved_tokens = n_handed_};
  }

  void Append(std::span<const std::int32_t> tokens);
  void Truncate(int n_tokens);
  // Blocks of memory for growing to `n_tokens`.
  int BlocksMissing(int n_tokens) const;

 private:
  friend class FakeEngine;
  std::uint64_t IdAfter(std::size_t n_blocks,
                        std::span<const std::int32_t> tokens) const;
  int CommonWith(std::span<const std::int32_t> tokens) const;
  void SetTail();
  void Promise(int n_blocks);

  FakeEngine& engine_;
  const std::uint64_t root_;
  std::vector<std::int32_t> tokens_;
  std::vector<FakeBlockPtr> blocks_;  // full ones
  bool has_tail_ = false;             // a block of its own
  // The tail is the beginning of a full one: copied before it grows.
  FakeBlockPtr old_block_;
  int promised_ = 0;
  int n_handed_ = 0;  // tokens that are saved or on their way
  bool resting_ = true;
};

class FakeEngine final : public Backend {
 public:
  explicit FakeEngine(const FakeOptions& options, unsigned seed)
      : options_(options), rng_(seed) {}

  Result<std::unique_ptr<Sequence>> NewSequence(
      const std::string& key_space) override {
    const std::uint64_t root = Mix(1, std::hash<std::string>()(key_space));
    return std::unique_ptr<Sequence>(
        std::make_unique<FakeSequence>(*this, root));
  }
  std::unique_ptr<Found> Find(std::span<const std::int32_t> tokens, int,
                              const std::string& key_space) override;
  Result<void> Step(std::span<const SequenceStep> steps) override;
  bool has_store() override { return options_.store; }
  std::uint64_t waiting_bytes() override { return queue_.size(); }
  double NowMs() override { return now_; }
  int block_tokens() override { return options_.block_tokens; }
  bool has_states() override { return false; }

  const FakeOptions& options() const { return options_; }
  // Called with each step before it is made.
  std::function<void(std::span<const SequenceStep>)> on_step;
  // The clock goes on, and the writer with it.
  void Advance(double ms);
  double NextSaveMs() const {
    return queue_.empty() ? 1e300 : queue_.front().done_ms - now_;
  }
  int held_blocks() const { return n_held_; }
  int promised_blocks() const { return n_promised_; }
  std::uint64_t n_computed() const { return n_computed_; }
  int n_failed() const { return n_failed_; }  // steps

 private:
  friend struct FakeBlock;
  friend class FakeSequence;
  struct Saving {
    FakeBlockPtr block;
    double done_ms;
  };
  bool Fits(int n_blocks) const {
    return options_.budget_blocks == 0 ||
           n_held_ + n_promised_ + n_blocks <= options_.budget_blocks;
  }
  FakeBlockPtr Publish(std::uint64_t id);
  FakeBlockPtr Lookup(std::uint64_t id) const {
    const auto at = index_.find(id);
    return at == index_.end() ? nullptr : at->second.lock();
  }
  void ExchangeStored();
  bool Relieve(FakeSequence& asking, int n_blocks, Relief relief);

  const FakeOptions options_;
  std::mt19937 rng_;
  double now_ = 1;
  int n_held_ = 0, n_promised_ = 0;
  std::uint64_t n_computed_ = 0;
  int n_failed_ = 0;
  std::unordered_map<std::uint64_t, std::weak_ptr<FakeBlock>> index_;
  std::unordered_set<std::uint64_t> stored_;
  std::deque<Saving> queue_;
  std::list<FakeSequence*> sequences_;  // the longest idle first
};

// What the fake model answers: the i-th token behind a prompt.
std::int32_t FakeToken(std::span<const std::int32_t> prompt, std::uint64_t seed,
                       int i);

}  // namespace hearth::serve
