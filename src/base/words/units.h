// Sizes in words.
#pragma once

#include <cstdint>
#include <string>

namespace hearth {

// Rounded up in the largest unit that it fills ("98 KiB"), so that a byte is
// not called a mebibyte and two sizes that differ are not told as one.
std::string InUnits(std::uint64_t bytes);

}  // namespace hearth
