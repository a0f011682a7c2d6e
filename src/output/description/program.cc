#include "output/description/program.h"

#include <utility>

namespace hearth::output {

bool IsBlank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

std::string Program::Spelled(std::string_view bytes) const {
  std::string text;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (bytes[i] != kTokenByte || i + 1 == bytes.size()) {
      text += bytes[i];
      continue;
    }
    const auto n = static_cast<unsigned char>(bytes[++i]) - std::size_t{1};
    if (n < markers.size()) text += markers[n].spelling;
  }
  return text;
}

Program WithTokens(Program program, const FindToken& find_token) {
  constexpr std::size_t kMarkersMax = 200;  // a number is one byte
  for (Part& part : program.parts) {
    if (part.kind != PartKind::kFixed || !part.special) continue;
    std::size_t i = 0;
    while (i < program.markers.size() &&
           program.markers[i].spelling != part.fixed) {
      ++i;
    }
    if (i == program.markers.size()) {
      const auto id = find_token(part.fixed);
      if (!id.has_value() || i >= kMarkersMax) continue;
      program.markers.push_back({*id, part.fixed});
    }
    part.fixed = Program::CodeOf(i);
  }
  return program;
}

}  // namespace hearth::output
