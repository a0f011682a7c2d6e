// Tables for people.
#pragma once

#include <string>
#include <vector>

namespace hearth::cli {

using Table = std::vector<std::vector<std::string>>;

// The first column left, the others right; the first row is the heading. Cells
// are escaped: names in them come from files.
std::string FormatTable(const Table& table);

}  // namespace hearth::cli
