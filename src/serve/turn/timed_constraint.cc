#include "serve/turn/timed_constraint.h"

#include <utility>

#include "base/stopwatch.h"

namespace hearth::serve {
namespace {

class TimedConstraint final : public TokenConstraint {
 public:
  TimedConstraint(std::unique_ptr<TokenConstraint> inner, Metrics& metrics)
      : inner_(std::move(inner)), metrics_(metrics) {}

  void Mask(std::span<std::uint64_t> bits) override {
    const Stopwatch clock;
    inner_->Mask(bits);
    metrics_.Mask(clock.ms());
  }
  void Accept(std::int32_t id) override { inner_->Accept(id); }
  int Mark() const override { return inner_->Mark(); }
  void Return(int mark) override { inner_->Return(mark); }

 private:
  const std::unique_ptr<TokenConstraint> inner_;
  Metrics& metrics_;
};

}  // namespace

MakeConstraint Timed(MakeConstraint make, Metrics& metrics) {
  if (!make) return make;
  return [make = std::move(make), &metrics] {
    return std::make_unique<TimedConstraint>(make(), metrics);
  };
}

}  // namespace hearth::serve
