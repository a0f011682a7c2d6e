// Strings as Python sees them: sequences of code points, kept here as UTF-8.
//
// A byte that is not part of well-formed UTF-8 counts as one code point, in
// U+DC80..U+DCFF, and goes back out as the same byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::jinja {

// The code point at `*pos`, which moves behind it. REQUIRES: *pos < s.size().
char32_t DecodePoint(std::string_view s, std::size_t* pos);
void AppendPoint(char32_t point, std::string* out);

// Offset of the first byte that is not UTF-8, or npos.
std::size_t FindInvalidUtf8(std::string_view s);

std::size_t CountPoints(std::string_view s);
// Offset of code point number `index`; s.size() when there are fewer.
std::size_t PointOffset(std::string_view s, std::size_t index);

std::u32string ToPoints(std::string_view s);
std::string FromPoints(const std::u32string& points);

// What str.isspace() accepts.
bool IsSpacePoint(char32_t point);
bool IsAllSpace(std::string_view s);

// str.strip() and its halves. An empty `chars` stands for whitespace.
std::string_view StripText(std::string_view s, std::string_view chars,
                           bool left, bool right);

// Case mapping, one to one. UpperText alone makes "SS" of U+00DF.
char32_t UpperPoint(char32_t point);
char32_t LowerPoint(char32_t point);
bool IsCasedPoint(char32_t point);
bool IsAlphaPoint(char32_t point);    // L
bool IsDigitPoint(char32_t point);    // Nd
bool IsNumericPoint(char32_t point);  // N
std::string UpperText(std::string_view s);
std::string LowerText(std::string_view s);
std::string CapitalizeText(std::string_view s);
// str.title(): a letter after a non-letter is upper case.
std::string TitleText(std::string_view s);

// What repr() of a str shows as it is.
bool IsPrintablePoint(char32_t point);

// HTML escaping as markupsafe does it.
std::string EscapeHtml(std::string_view s);

}  // namespace hearth::jinja
