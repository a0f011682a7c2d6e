// What the scheduler needs of an engine, so that its rules can be tried on one
// that only counts. As the calls of hearth/engine.h, which say more.
//
// Threads  Find may be called by any thread, the rest by the scheduler's.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "hearth/engine.h"
#include "hearth/result.h"

namespace hearth::serve {

// What Backend::Find found.
class Found {
 public:
  virtual ~Found() = default;
};

class Sequence {
 public:
  virtual ~Sequence() = default;
  virtual int Held(std::span<const std::int32_t> tokens) = 0;
  // `found` null: nothing.
  virtual Result<SyncReport> Attach(std::span<const std::int32_t> tokens,
                                    std::unique_ptr<Found> found,
                                    std::span<const int> marks) = 0;
  virtual int NextStop() = 0;
  virtual bool AddStop(int n_tokens) = 0;
  virtual Result<void> Reserve(int n_tokens, Relief relief) = 0;
  virtual Result<std::unique_ptr<Generation>> Begin(
      const GenerateOptions& options, const Session::OnToken& on_token) = 0;
  virtual Result<std::unique_ptr<Sequence>> Fork() = 0;
  virtual bool TryPersist(bool rests) = 0;
  virtual void Rest() = 0;
  virtual std::vector<std::int32_t> tokens() = 0;
  virtual int n_tokens() = 0;
  virtual KvReport Usage() = 0;
};

struct SequenceStep {
  Sequence* sequence;
  std::span<const std::int32_t> tokens;
  StepLogits want;
};

class Backend {
 public:
  virtual ~Backend() = default;
  virtual Result<std::unique_ptr<Sequence>> NewSequence(
      const std::string& key_space) = 0;
  virtual std::unique_ptr<Found> Find(std::span<const std::int32_t> tokens,
                                      int n_held,
                                      const std::string& key_space) = 0;
  // After an error no sequence has changed.
  virtual Result<void> Step(std::span<const SequenceStep> steps) = 0;
  // Whether Find can find anything.
  virtual bool has_store() = 0;
  // Memory that waiting saves keep.
  virtual std::uint64_t waiting_bytes() = 0;
  virtual double NowMs() = 0;
  virtual int block_tokens() = 0;
  // Whether what rests has states that are not saved at once.
  virtual bool has_states() = 0;
};

}  // namespace hearth::serve
