#include "cli/terminal/table.h"

#include <algorithm>

#include "cli/terminal/text.h"

namespace hearth::cli {

std::string FormatTable(const Table& table) {
  Table cells;
  std::vector<std::size_t> widths;
  for (const auto& row : table) {
    cells.emplace_back();
    for (const std::string& cell : row) cells.back().push_back(Escaped(cell));
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], cells.back()[i].size());
    }
  }
  std::string text;
  for (const auto& row : cells) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string pad(widths[i] - row[i].size(), ' ');
      text += (i > 0 ? "  " : "") + (i == 0 ? row[i] + pad : pad + row[i]);
    }
    text += "\n";
  }
  return text;
}

}  // namespace hearth::cli
