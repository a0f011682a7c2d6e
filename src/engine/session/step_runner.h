// Runs forward steps, one at a time, for sessions of any thread.
#pragma once

#include <cstdint>
#include <span>

#include "engine/session/history.h"
#include "engine/workers.h"
#include "model/forward.h"

namespace hearth {

// What one session wants of a step.
struct StepItem {
  History* history;
  std::span<const std::int32_t> tokens;  // appended; at least 1
  LogitRows want;
};

class StepRunner {
 public:
  // `model` outlives the object; `ops` are of it.
  StepRunner(const LoadedModel& model, std::shared_ptr<Workers> workers,
             std::unique_ptr<Ops> ops);

  // From now on histories get what their logits were computed from, too.
  // Called once, before any step.
  void KeepHidden() { keeps_hidden_ = true; }

  // Of the operations that it runs on.
  Numerics numerics() const { return numerics_; }

  // One forward step for all items, kStepTokensMax tokens at most together.
  // Each history gets its tokens and the logits that it wants. After an error
  // every history is as before. Waits for its turn.
  Result<void> Run(std::span<const StepItem> items);

 private:
  Result<void> RunAll(std::span<const StepItem> items);
  // A history that has had its step.
  void Keep(const StepItem& item) const;

  std::size_t n_vocab_, d_model_;
  bool keeps_hidden_ = false;
  const std::shared_ptr<Workers> workers_;
  Forward forward_ HEARTH_GUARDED_BY(workers_->turn);
  const Numerics numerics_;
};

}  // namespace hearth
