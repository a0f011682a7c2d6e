// What this machine has left.
#pragma once

#include <cstdint>

namespace hearth::cli {

// Bytes that programs can still take without driving others out, as the system
// estimates it, and no more than this process's control group has left. 0 where
// nobody says.
std::uint64_t AvailableMemory();

}  // namespace hearth::cli
