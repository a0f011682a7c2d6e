#include "grammar/text/scanner.h"

#include <algorithm>

#include "text/unicode/utf8.h"

namespace hearth::grammar {

Result<char32_t> Scanner::TakeChar() {
  if (AtEnd()) return Wrong("the text ends too early");
  const Utf8Char c = DecodeUtf8(text_, position_);
  if (!c.valid) return Wrong("not UTF-8");
  position_ += c.length;
  return c.code;
}

std::optional<int> Scanner::TakeNumber() {
  int value = 0;
  int n_digits = 0;
  while (n_digits < 9 && Peek() >= '0' && Peek() <= '9') {
    value = value * 10 + (Peek() - '0');
    Skip();
    ++n_digits;
  }
  if (n_digits == 0) return std::nullopt;
  return value;
}

Result<char32_t> Scanner::TakeHex(int n) {
  char32_t value = 0;
  for (int i = 0; i < n; ++i) {
    const char c = Peek();
    const int digit = c >= '0' && c <= '9'   ? c - '0'
                      : c >= 'a' && c <= 'f' ? c - 'a' + 10
                      : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                             : -1;
    if (digit < 0) {
      return Wrong("expected " + std::to_string(n) + " hexadecimal digits");
    }
    value = value * 16 + static_cast<char32_t>(digit);
    Skip();
  }
  return value;
}

Error Scanner::Wrong(const std::string& problem) const {
  const std::string_view before =
      text_.substr(0, std::min(position_, text_.size()));
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const std::size_t line_begin = before.rfind('\n') + 1;  // npos + 1 is 0
  return {Code::kInvalidArgument,
          what_ + ", line " + std::to_string(line) + ", column " +
              std::to_string(before.size() - line_begin + 1) + ": " + problem};
}

}  // namespace hearth::grammar
