#pragma once

#include "serve/schedule/driver.h"

namespace hearth::serve {

// Looks into the driver.
class DriverProbe {
 public:
  explicit DriverProbe(const Driver& driver) : driver_(driver) {}
  template <typename F>
  void EachBranch(const F& f) const {
    for (const auto& [id, job] : driver_.jobs_) {
      for (const auto& branch : job->branches) f(*branch);
    }
  }
  const Branch* Of(const Sequence* sequence) const {
    const Branch* found = nullptr;
    EachBranch([&](const Branch& b) {
      if (b.sequence.get() == sequence) found = &b;
    });
    return found;
  }
  int passed_over_max() const { return driver_.planner_.passed_over_max(); }

 private:
  const Driver& driver_;
};

}  // namespace hearth::serve
