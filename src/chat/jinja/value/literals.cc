#include "chat/jinja/value/literals.h"

#include <charconv>
#include <cmath>

#include "chat/jinja/value/text.h"

namespace hearth::jinja {
namespace {

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

int DigitValue(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

// Digits of `base` with single underscores between them; the length read.
std::size_t ScanDigits(std::string_view s, int base) {
  std::size_t i = 0;
  while (i < s.size()) {
    if (DigitValue(s[i]) < base) {
      ++i;
    } else if (s[i] == '_' && i > 0 && i + 1 < s.size() &&
               DigitValue(s[i + 1]) < base) {
      ++i;
    } else {
      break;
    }
  }
  return i;
}

std::string WithoutUnderscores(std::string_view s) {
  std::string out;
  for (const char c : s) {
    if (c != '_') out += c;
  }
  return out;
}

bool DigitsToInt(std::string_view digits, int base, std::int64_t* out) {
  const std::string clean = WithoutUnderscores(digits);
  const char* end = clean.data() + clean.size();
  const auto [stop, error] = std::from_chars(clean.data(), end, *out, base);
  return error == std::errc() && stop == end;
}

bool DigitsToFloat(std::string_view digits, double* out) {
  const std::string clean = WithoutUnderscores(digits);
  const char* end = clean.data() + clean.size();
  const auto [stop, error] = std::from_chars(clean.data(), end, *out);
  if (stop != end) return false;
  if (error == std::errc::result_out_of_range) {
    // Too large is infinite, too small is zero.
    const std::size_t e = clean.find_first_of("eE");
    const bool tiny =
        e != std::string::npos && e + 1 < clean.size() && clean[e + 1] == '-';
    *out = tiny ? 0.0 : HUGE_VAL;
    return true;
  }
  return error == std::errc();
}

// Length of a fraction and exponent at `s`, 0 when neither is there.
std::size_t ScanFloatTail(std::string_view s) {
  std::size_t i = 0;
  if (i + 1 < s.size() && s[i] == '.' && IsDigit(s[i + 1])) {
    i += 1 + ScanDigits(s.substr(1), 10);
  }
  if (i < s.size() && (s[i] == 'e' || s[i] == 'E')) {
    std::size_t j = i + 1;
    if (j < s.size() && (s[j] == '+' || s[j] == '-')) ++j;
    if (j < s.size() && IsDigit(s[j])) i = j + ScanDigits(s.substr(j), 10);
  }
  return i;
}

// Hex digits of a \x, \u or \U escape.
bool ReadHex(std::string_view s, std::size_t n, char32_t* point) {
  if (s.size() < n) return false;
  char32_t value = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const int digit = DigitValue(s[i]);
    if (digit >= 16) return false;
    value = value * 16 + static_cast<char32_t>(digit);
  }
  *point = value;
  return value <= 0x10FFFF;
}

// The one-letter escapes; 0 for none of them.
char SimpleEscape(char c) {
  switch (c) {
    case '\\':
    case '\'':
    case '"':
      return c;
    case 'a':
      return '\a';
    case 'b':
      return '\b';
    case 'f':
      return '\f';
    case 'n':
      return '\n';
    case 'r':
      return '\r';
    case 't':
      return '\t';
    case 'v':
      return '\v';
    default:
      return '\0';
  }
}

}  // namespace

bool ReadNumber(std::string_view s, bool may_be_float, NumberLiteral* out) {
  int base = 10;
  if (s.size() > 2 && s[0] == '0') {
    const char c = static_cast<char>(s[1] | 0x20);
    base = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 10;
    if (base != 10 && DigitValue(s[2]) >= base) base = 10;
  }
  if (base != 10) {
    const std::size_t n = ScanDigits(s.substr(2), base);
    out->length = 2 + n;
    return DigitsToInt(s.substr(2, n), base, &out->int_value);
  }
  const std::size_t n = ScanDigits(s, 10);
  const std::size_t tail = may_be_float ? ScanFloatTail(s.substr(n)) : 0;
  out->length = n + tail;
  out->is_float = tail > 0;
  if (out->is_float)
    return DigitsToFloat(s.substr(0, n + tail), &out->float_value);
  return DigitsToInt(s.substr(0, n), 10, &out->int_value);
}

bool UnescapeString(std::string_view body, std::string* out) {
  out->reserve(body.size());
  for (std::size_t i = 0; i < body.size(); ++i) {
    if (body[i] != '\\' || i + 1 >= body.size()) {
      *out += body[i];
      continue;
    }
    const char c = body[++i];
    if (const char simple = SimpleEscape(c); simple != '\0') {
      *out += simple;
    } else if (c == '\n') {
      continue;
    } else if (c >= '0' && c <= '7') {
      char32_t point = 0;
      std::size_t n = 0;
      while (n < 3 && i + n < body.size() && body[i + n] >= '0' &&
             body[i + n] <= '7') {
        point = point * 8 + static_cast<char32_t>(body[i + n] - '0');
        ++n;
      }
      AppendPoint(point, out);
      i += n - 1;
    } else if (c == 'x' || c == 'u' || c == 'U') {
      const std::size_t n = c == 'x' ? 2 : c == 'u' ? 4 : 8;
      char32_t point = 0;
      if (!ReadHex(body.substr(i + 1), n, &point)) return false;
      if (point >= 0xD800 && point <= 0xDFFF) point = 0xFFFD;
      AppendPoint(point, out);
      i += n;
    } else {
      *out += '\\';
      *out += c;
    }
  }
  return true;
}

bool ParseInt(std::string_view text, int base, std::int64_t* out) {
  text = StripText(text, {}, true, true);
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  if (text.size() > 2 && text[0] == '0') {
    const char c = static_cast<char>(text[1] | 0x20);
    const int prefix = c == 'x' ? 16 : c == 'o' ? 8 : c == 'b' ? 2 : 0;
    if (prefix != 0 && prefix == base) text.remove_prefix(2);
  }
  if (text.empty() || ScanDigits(text, base) != text.size()) return false;
  if (!DigitsToInt(text, base, out)) return false;
  if (negative) *out = -*out;
  return true;
}

bool ParseFloat(std::string_view text, double* out) {
  text = StripText(text, {}, true, true);
  bool negative = false;
  if (!text.empty() && (text[0] == '-' || text[0] == '+')) {
    negative = text[0] == '-';
    text.remove_prefix(1);
  }
  const std::string lower = LowerText(text.substr(0, 9));
  if (lower == "inf" || lower == "infinity") {
    *out = HUGE_VAL;
  } else if (lower == "nan") {
    *out = std::nan("");
  } else {
    if (text.empty() || (!IsDigit(text[0]) && text[0] != '.')) return false;
    std::size_t n = ScanDigits(text, 10);
    const std::size_t whole = n;
    std::string clean(text.substr(0, n));
    if (n < text.size() && text[n] == '.') {
      const std::size_t fraction = ScanDigits(text.substr(n + 1), 10);
      if (whole + fraction == 0) return false;
      if (whole == 0) clean = "0";
      if (fraction > 0) clean += text.substr(n, fraction + 1);
      n += 1 + fraction;
    }
    const std::string_view exponent = text.substr(n);
    if (!exponent.empty()) {
      if (ScanFloatTail(exponent) != exponent.size() || exponent[0] == '.') {
        return false;
      }
      clean += exponent[0];
      clean += exponent.substr(exponent[1] == '+' ? 2 : 1);
    }
    if (!DigitsToFloat(clean, out)) return false;
  }
  if (negative) *out = -*out;
  return true;
}

std::string FloatText(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char buffer[64];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value,
                                 std::chars_format::scientific)
                       .ptr;
  const std::string sci(buffer, end);
  const std::size_t e = sci.find('e');
  const int exponent = std::atoi(sci.c_str() + e + 1);
  if (exponent < -4 || exponent >= 16) return sci;
  const auto fixed_end = std::to_chars(buffer, buffer + sizeof buffer, value,
                                       std::chars_format::fixed)
                             .ptr;
  std::string fixed(buffer, fixed_end);
  if (fixed.find('.') == std::string::npos) fixed += ".0";
  return fixed;
}

}  // namespace hearth::jinja
