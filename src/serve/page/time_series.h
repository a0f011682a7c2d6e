// Figures of the last ten minutes, in steps of five seconds.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hearth::serve {

class TimeSeries {
 public:
  static constexpr std::size_t kSteps = 120;
  static constexpr std::int64_t kStepMs = 5000;

  // `empty`: what a step has in which nothing happens.
  explicit TimeSeries(double empty) : empty_(empty) { values_.fill(empty); }

  void NoteMax(std::int64_t now_ms, double value) {
    double& step = At(now_ms);
    step = std::max(step, value);
  }
  void Add(std::int64_t now_ms, double value) { At(now_ms) += value; }

  // Oldest first; the last one is the step of `now_ms`.
  std::vector<double> Values(std::int64_t now_ms) {
    Advance(now_ms);
    std::vector<double> out;
    out.reserve(kSteps);
    for (std::size_t i = 1; i <= kSteps; ++i) {
      out.push_back(values_[(newest_ + i) % kSteps]);
    }
    return out;
  }

 private:
  double& At(std::int64_t now_ms) {
    Advance(now_ms);
    return values_[newest_];
  }

  // A clock that goes back stays in the newest step.
  void Advance(std::int64_t now_ms) {
    const std::int64_t step = now_ms / kStepMs;
    const std::int64_t n = std::min<std::int64_t>(step - step_, kSteps);
    for (std::int64_t i = 0; i < n; ++i) {
      newest_ = (newest_ + 1) % kSteps;
      values_[newest_] = empty_;
    }
    step_ = std::max(step_, step);
  }

  const double empty_;
  std::array<double, kSteps> values_{};
  std::size_t newest_ = 0;
  std::int64_t step_ = 0;
};

}  // namespace hearth::serve
