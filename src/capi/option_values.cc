#include "capi/option_values.h"

#include <charconv>
#include <cmath>
#include <limits>

namespace hearth::capi {
namespace {

// The whole of `text` as a number.
template <typename T>
bool Read(std::string_view text, T& value) {
  const char* end = text.data() + text.size();
  const auto [at, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && at == end;
}

Error Expected(const std::string& what, std::string_view text) {
  return {Code::kInvalidArgument,
          "wants " + what + ", not \"" + std::string(text) + "\""};
}

}  // namespace

Result<bool> BoolOf(std::string_view text) {
  if (text == "true" || text == "1") return true;
  if (text == "false" || text == "0") return false;
  return Expected("true or false", text);
}

Result<std::int64_t> IntOf(std::string_view text, std::int64_t low,
                           std::int64_t high) {
  std::int64_t value = 0;
  if (Read(text, value) && value >= low && value <= high) return value;
  return Expected("a whole number", text);
}

Result<std::uint64_t> UnsignedOf(std::string_view text) {
  std::uint64_t value = 0;
  if (Read(text, value)) return value;
  return Expected("a whole number from 0", text);
}

Result<double> RealOf(std::string_view text) {
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  double value = 0;
  if (Read(text, value) && std::isfinite(value)) return value;
  return Expected("a number", text);
}

}  // namespace hearth::capi
