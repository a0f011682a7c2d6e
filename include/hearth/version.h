// The version of the library and program.
#pragma once

namespace hearth {
inline constexpr const char* kVersion = "0.1.0";
}  // namespace hearth
