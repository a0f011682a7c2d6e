// Numbers for people.
#pragma once

#include <cstdint>
#include <string>

namespace hearth::cli {

std::string HumanBytes(std::uint64_t n);  // "5.0 MB" (decimal units)
std::string HumanCount(std::uint64_t n);  // "9.8 M"
std::string HumanMs(double ms);           // "3.2 ms", "1.05 s"
// How long ago a time in nanoseconds since 1970 was: "5 min ago"; 0: "-".
std::string HumanAgo(std::int64_t unix_ns);
std::string Fixed(double value, int decimals);

}  // namespace hearth::cli
