// Counts what a rendering does against its limits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "chat/jinja/limits.h"
#include "hearth/result.h"

namespace hearth::jinja {

class Budget {
 public:
  explicit Budget(const ChatTemplateLimits& limits) : limits_(limits) {}

  const ChatTemplateLimits& limits() const { return limits_; }

  // Pays for `n` evaluations or elements.
  Result<void> Step(std::uint64_t n = 1) {
    steps_ += n;
    if (steps_ > limits_.steps_max) {
      return {Code::kResourceFull, "the template takes more than " +
                                       std::to_string(limits_.steps_max) +
                                       " steps"};
    }
    return {};
  }

  // Pays for reading or comparing `bytes` of text.
  Result<void> Touch(std::size_t bytes) { return Step(bytes / 256); }

  // Asked before a string of `bytes` is made.
  Result<void> BuildString(std::size_t bytes) {
    if (bytes > limits_.string_bytes_max) {
      return {Code::kResourceFull,
              "a string grows beyond " +
                  std::to_string(limits_.string_bytes_max) + " bytes"};
    }
    HEARTH_TRY(Touch(bytes));
    return Build(bytes);
  }

  // Asked before a container of `count` elements is made.
  Result<void> BuildItems(std::size_t count) {
    HEARTH_TRY(Step(count));
    if (count > limits_.built_bytes_max / kItemBytes)
      return Build(SIZE_MAX / 2);
    return Build(count * kItemBytes);
  }

 private:
  static constexpr std::size_t kItemBytes = 64;

  Result<void> Build(std::size_t bytes) {
    built_ += bytes;
    if (built_ > limits_.built_bytes_max) {
      return {Code::kResourceFull, "the template builds more than " +
                                       std::to_string(limits_.built_bytes_max) +
                                       " bytes of values"};
    }
    return {};
  }

  const ChatTemplateLimits& limits_;
  std::uint64_t steps_ = 0;
  std::size_t built_ = 0;
};

}  // namespace hearth::jinja
