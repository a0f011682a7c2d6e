#include "cli/terminal/units.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <ctime>

namespace hearth::cli {
namespace {

std::string Scaled(std::uint64_t n, const std::array<const char*, 5>& units) {
  if (n < 1000) return std::to_string(n) + units[0];
  double value = static_cast<double>(n);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return Fixed(value, value < 99.95 ? 1 : 0) + units[unit];
}

}  // namespace

std::string Fixed(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof(text), "%.*f", decimals, value);
  return text;
}

std::string HumanBytes(std::uint64_t n) {
  return Scaled(n, {" B", " kB", " MB", " GB", " TB"});
}

std::string HumanCount(std::uint64_t n) {
  return Scaled(n, {"", " k", " M", " G", " T"});
}

std::string HumanMs(double ms) {
  if (ms < 10) return Fixed(ms, 2) + " ms";
  if (ms < 1000) return Fixed(ms, 1) + " ms";
  return Fixed(ms / 1000, 2) + " s";
}

std::string HumanAgo(std::int64_t unix_ns) {
  if (unix_ns <= 0) return "-";
  const double s = std::max(0.0, static_cast<double>(std::time(nullptr)) -
                                     static_cast<double>(unix_ns) * 1e-9);
  if (s < 60) return Fixed(s, 0) + " s ago";
  if (s < 3600) return Fixed(s / 60, 0) + " min ago";
  if (s < 48 * 3600) return Fixed(s / 3600, 0) + " h ago";
  return Fixed(s / 86400, 0) + " days ago";
}

}  // namespace hearth::cli
