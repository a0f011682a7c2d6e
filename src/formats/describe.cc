#include "formats/describe.h"

#include <cstddef>

namespace hearth {

std::string Quoted(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  constexpr std::size_t kLengthMax = 80;
  std::string out = "\"";
  for (const char c : text.substr(0, kLengthMax)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
    } else {
      out += "\\x";
      out += kHex[byte >> 4];
      out += kHex[byte & 15];
    }
  }
  out += text.size() > kLengthMax ? "\"..." : "\"";
  return out;
}

std::string ShapeText(std::span<const std::uint64_t> shape) {
  std::string out = "[";
  for (std::size_t i = 0; i < shape.size(); ++i) {
    if (i > 0) out += ", ";
    if (i == 8) {
      out += "...";
      break;
    }
    out += std::to_string(shape[i]);
  }
  return out + "]";
}

std::string NameForFiles(std::string_view text) {
  std::string out;
  bool any = false;
  for (const char c : text.substr(0, 64)) {
    const bool word = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                      (c >= '0' && c <= '9');
    any |= word;
    out += word || c == '.' || c == '-' || c == '_' ? c : '-';
  }
  // A leading dot or dash would hide the file or look like an option.
  const std::size_t start = out.find_first_not_of(".-");
  return any ? out.substr(start) : "";
}

}  // namespace hearth
