// Number and string literals, as the lexer finds them and as the filters |int
// and |float read them from text; and how Python prints a float.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace hearth::jinja {

struct NumberLiteral {
  bool is_float = false;
  std::int64_t int_value = 0;
  double float_value = 0;
  std::size_t length = 0;  // bytes of the literal
};

// Reads the number at the start of `s`, which begins with a digit. Knows 0x,
// 0o, 0b and underscores between digits. False when an integer needs more than
// 64 bits.
bool ReadNumber(std::string_view s, bool may_be_float, NumberLiteral* out);

// Resolves backslash sequences; an unknown one stays as it is. False for a \x
// or \u without its digits.
bool UnescapeString(std::string_view body, std::string* out);

// What int(text, base) and float(text) take, blanks around included. False for
// anything else, and for integers beyond 64 bits.
bool ParseInt(std::string_view text, int base, std::int64_t* out);
bool ParseFloat(std::string_view text, double* out);

// repr(float): the shortest digits that read back as the same number.
std::string FloatText(double value);

}  // namespace hearth::jinja
