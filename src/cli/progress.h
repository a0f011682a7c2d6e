// The progress of a long prefill on stderr: a bar on a terminal, else a line
// every few seconds. A prefill of under a second shows nothing.
#pragma once

#include <chrono>

namespace hearth::cli {

class PrefillProgress {
 public:
  explicit PrefillProgress(bool quiet);
  ~PrefillProgress();
  void Update(int done, int total);

 private:
  using Clock = std::chrono::steady_clock;
  void Draw(int done, int total, double seconds);

  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  int first_done_ = -1;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = Clock::now();
};

}  // namespace hearth::cli
