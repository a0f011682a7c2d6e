// A time limit that several calls share, each of which takes what is left of it
// as a number of seconds, 0 being none.
#pragma once

#include <algorithm>
#include <chrono>

namespace hearth {

class TimeLimit {
 public:
  using Clock = std::chrono::steady_clock;

  // From `start` on. 0: none.
  explicit TimeLimit(double seconds, Clock::time_point start = Clock::now())
      : seconds_(seconds), start_(start) {}

  // 0 without a limit. A limit that is over is the shortest one, a millisecond:
  // 0 would be none.
  double Left(Clock::time_point now = Clock::now()) const {
    if (seconds_ <= 0) return 0;
    const std::chrono::duration<double> took = now - start_;
    return std::max(0.001, seconds_ - took.count());
  }

 private:
  double seconds_;
  Clock::time_point start_;
};

}  // namespace hearth
