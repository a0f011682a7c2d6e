// Maps a model's weights in while the rest of a start goes on, in the order in
// which the first step reads them. Else that step takes a page fault for every
// 64 KiB of them, a third of its time in a warm page cache, and waits for a
// cold disk piece by piece.
//
// Threads  one of its own; it reads a byte here and there and nothing waits for
//          it.
#pragma once

#include <atomic>
#include <thread>

#include "model/weights.h"

namespace hearth {

class WeightPrefetch {
 public:
  // `model` must outlive the object. Does nothing for a model that is not
  // mapped from files, would not fit into three quarters of the memory, or
  // reads only some of its weights a step (experts).
  explicit WeightPrefetch(const LoadedModel& model);
  // Ends it, done or not.
  ~WeightPrefetch();
  WeightPrefetch(const WeightPrefetch&) = delete;
  WeightPrefetch& operator=(const WeightPrefetch&) = delete;

 private:
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace hearth
