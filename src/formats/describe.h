// Words for error messages about things from a file that may be hostile.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace hearth {

// `text` in double quotes on one line: bytes that are not printable ASCII as
// \xNN, cut after 80 bytes.
std::string Quoted(std::string_view text);

// "[4, 8]"
std::string ShapeText(std::span<const std::uint64_t> shape);

// `text` with everything but letters, digits, '.', '-' and '_' replaced by '-',
// at most 64 bytes: fit for a file name. Empty when nothing usable is left.
std::string NameForFiles(std::string_view text);

}  // namespace hearth
