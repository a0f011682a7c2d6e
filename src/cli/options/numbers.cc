#include "cli/options/numbers.h"

#include <charconv>
#include <cmath>
#include <limits>

#include "cli/terminal/units.h"

namespace hearth::cli {
namespace {

// The whole of `text` as a T.
template <typename T>
std::optional<T> Whole(std::string_view text) {
  T value{};
  const char* end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, value);
  if (text.empty() || parsed.ec != std::errc() || parsed.ptr != end) {
    return std::nullopt;
  }
  return value;
}

std::string Plain(double value) {
  if (value == std::floor(value) && std::abs(value) < 1e15) {
    return Fixed(value, 0);
  }
  std::string text = Fixed(value, 6);
  while (text.ends_with('0')) text.pop_back();
  return text;
}

Error Expected(const std::string& text, const std::string& what) {
  return {Code::kInvalidArgument, "\"" + text + "\": must be " + what};
}

}  // namespace

Result<std::int64_t> ParseInteger(const std::string& text, std::int64_t low,
                                  std::int64_t high) {
  const auto value = Whole<std::int64_t>(text);
  if (value.has_value() && *value >= low && *value <= high) return *value;
  const bool bounded = high < std::numeric_limits<std::int32_t>::max();
  return Expected(text, bounded ? "a whole number from " + std::to_string(low) +
                                      " to " + std::to_string(high)
                                : "a whole number, at least " +
                                      std::to_string(low) + " and at most " +
                                      std::to_string(high));
}

Result<double> ParseNumber(const std::string& text, double low, double high) {
  const auto value = Whole<double>(text);
  if (value.has_value() && std::isfinite(*value) && *value >= low &&
      *value <= high) {
    return *value;
  }
  return Expected(text,
                  std::isfinite(high)
                      ? "a number from " + Plain(low) + " to " + Plain(high)
                      : "a number, at least " + Plain(low));
}

Result<std::uint64_t> ParseSize(const std::string& text) {
  const auto bad = [&text] {
    return Expected(text,
                    "a number of bytes, such as 4096, 500M, 1.5G or 64Ki");
  };
  std::string_view rest = text;
  const auto digits = rest.find_first_not_of("0123456789.");
  const std::string_view number = rest.substr(0, digits);
  rest = digits == std::string_view::npos ? "" : rest.substr(digits);
  while (rest.starts_with(' ')) rest.remove_prefix(1);
  double scale = 1;
  if (!rest.empty()) {
    constexpr std::string_view kPowers = "kmgt";
    const char letter = rest[0] >= 'A' && rest[0] <= 'Z'
                            ? static_cast<char>(rest[0] + 32)
                            : rest[0];
    const auto power = kPowers.find(letter);
    if (power != std::string_view::npos) {
      rest.remove_prefix(1);
      const bool binary = rest.starts_with('i');
      if (binary) rest.remove_prefix(1);
      scale =
          std::pow(binary ? 1024.0 : 1000.0, static_cast<double>(power + 1));
    }
    if (rest.starts_with('B') || rest.starts_with('b')) rest.remove_prefix(1);
  }
  if (!rest.empty()) return bad();
  if (scale == 1) {
    const auto whole = Whole<std::uint64_t>(number);
    if (!whole.has_value()) return bad();
    return *whole;
  }
  const auto value = Whole<double>(number);
  // 2^63: far beyond any disk, and exact in both types.
  if (!value.has_value() || !(*value * scale < 9223372036854775808.0)) {
    return bad();
  }
  return static_cast<std::uint64_t>(std::llround(*value * scale));
}

Result<std::optional<std::uint64_t>> ParseSeed(const std::string& text) {
  if (text == "-1") return std::optional<std::uint64_t>();
  const auto value = Whole<std::uint64_t>(text);
  if (!value.has_value()) {
    return Expected(text,
                    "a whole number from 0 to 18446744073709551615, or -1 for "
                    "a new one each run");
  }
  return value;
}

}  // namespace hearth::cli
