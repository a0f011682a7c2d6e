#include "base/words/printable.h"

#include <cstdio>

namespace hearth {

std::string Printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // C1 controls as UTF-8 has them: C2 80 to C2 9F.
    const bool c1 = byte == 0xc2 && i + 1 < text.size() &&
                    (static_cast<unsigned char>(text[i + 1]) & 0xe0) == 0x80;
    if (byte >= 0x20 && byte != 0x7f && !c1) {
      out += text[i];
      continue;
    }
    char escaped[5];
    std::snprintf(escaped, sizeof(escaped), "\\x%02x",
                  c1 ? static_cast<unsigned char>(text[++i]) : byte);
    out += escaped;
  }
  return out;
}

}  // namespace hearth
