// Options by name: a table of names, each with what reads its value.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "hearth/result.h"

namespace hearth::capi {

// Errors (kInvalidArgument) say what was expected, without the option's name.
Result<bool> BoolOf(std::string_view text);
Result<std::int64_t> IntOf(std::string_view text, std::int64_t low,
                           std::int64_t high);
Result<std::uint64_t> UnsignedOf(std::string_view text);
// Finite, or minus infinity ("-inf").
Result<double> RealOf(std::string_view text);

template <typename T>
struct OptionSetter {
  std::string_view name;
  Result<void> (*set)(std::string_view value, T& options);
};

// kInvalidArgument for a name that `setters` do not have, or a value.
template <typename T>
Result<void> SetOption(std::span<const OptionSetter<T>> setters,
                       std::string_view name, std::string_view value,
                       T& options) {
  for (const auto& setter : setters) {
    if (setter.name != name) continue;
    const Result<void> set = setter.set(value, options);
    if (set.ok()) return set;
    return {set.error().code, std::string(name) + ": " + set.error().message};
  }
  return {Code::kInvalidArgument,
          "there is no option \"" + std::string(name) + "\""};
}

// A setter for one member.
template <typename T, bool T::*Member>
Result<void> SetBool(std::string_view value, T& options) {
  HEARTH_ASSIGN(options.*Member, BoolOf(value));
  return {};
}
template <typename T, int T::*Member>
Result<void> SetInt(std::string_view value, T& options) {
  HEARTH_ASSIGN(const std::int64_t number, IntOf(value, INT32_MIN, INT32_MAX));
  options.*Member = static_cast<int>(number);
  return {};
}
template <typename T, std::uint64_t T::*Member>
Result<void> SetUnsigned(std::string_view value, T& options) {
  HEARTH_ASSIGN(options.*Member, UnsignedOf(value));
  return {};
}
template <typename T, double T::*Member>
Result<void> SetReal(std::string_view value, T& options) {
  HEARTH_ASSIGN(options.*Member, RealOf(value));
  return {};
}
template <typename T, std::string T::*Member>
Result<void> SetText(std::string_view value, T& options) {
  options.*Member = value;
  return {};
}

}  // namespace hearth::capi
