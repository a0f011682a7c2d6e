// The JSON header of a safetensors file, read as events: no tree is built, so
// memory stays in proportion to the tensors, and a repeated name is seen.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hearth/result.h"

namespace hearth {

struct SafetensorsHeaderEntry {
  std::string name;
  std::string type;
  std::vector<std::uint64_t> shape;
  std::array<std::uint64_t, 2> offsets{};  // in the data: begin, end
};

struct SafetensorsHeader {
  std::vector<SafetensorsHeaderEntry> entries;
  std::vector<std::pair<std::string, std::string>> metadata;
};

// kCorrupt for anything but an object of well-formed entries with distinct
// names. Sizes and offsets are not judged here.
Result<SafetensorsHeader> ParseSafetensorsHeader(std::string_view json,
                                                 const std::string& label);

// Bits of one number of a safetensors type; nothing for unknown types.
std::optional<std::uint64_t> SafetensorsBits(std::string_view type);

}  // namespace hearth
