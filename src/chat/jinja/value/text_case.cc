// Letters and their cases, as utf8proc's Unicode has them.
#include <utf8proc.h>

#include "chat/jinja/value/text.h"

namespace hearth::jinja {
namespace {

constexpr char32_t kSharpS = 0xDF;  // whose upper case is two letters

utf8proc_category_t CategoryOf(char32_t c) {
  return utf8proc_category(static_cast<utf8proc_int32_t>(c));
}

}  // namespace

char32_t LowerPoint(char32_t c) {
  return static_cast<char32_t>(
      utf8proc_tolower(static_cast<utf8proc_int32_t>(c)));
}

char32_t UpperPoint(char32_t c) {
  if (c == kSharpS) return c;
  return static_cast<char32_t>(
      utf8proc_toupper(static_cast<utf8proc_int32_t>(c)));
}

bool IsCasedPoint(char32_t c) {
  const utf8proc_category_t category = CategoryOf(c);
  return category == UTF8PROC_CATEGORY_LU || category == UTF8PROC_CATEGORY_LL ||
         category == UTF8PROC_CATEGORY_LT;
}

bool IsAlphaPoint(char32_t c) {
  const utf8proc_category_t category = CategoryOf(c);
  return category >= UTF8PROC_CATEGORY_LU && category <= UTF8PROC_CATEGORY_LO;
}

bool IsDigitPoint(char32_t c) { return CategoryOf(c) == UTF8PROC_CATEGORY_ND; }

bool IsNumericPoint(char32_t c) {
  const utf8proc_category_t category = CategoryOf(c);
  return category >= UTF8PROC_CATEGORY_ND && category <= UTF8PROC_CATEGORY_NO;
}

bool IsPrintablePoint(char32_t c) {
  if (c == ' ') return true;
  const utf8proc_category_t category = CategoryOf(c);
  const bool blank = category >= UTF8PROC_CATEGORY_ZS;  // to ZP, and C behind
  return !blank && category != UTF8PROC_CATEGORY_CN;
}

std::string UpperText(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t pos = 0; pos < s.size();) {
    const char32_t c = DecodePoint(s, &pos);
    if (c == kSharpS) {
      out += "SS";
    } else {
      AppendPoint(UpperPoint(c), &out);
    }
  }
  return out;
}

std::string LowerText(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t pos = 0; pos < s.size();) {
    AppendPoint(LowerPoint(DecodePoint(s, &pos)), &out);
  }
  return out;
}

std::string CapitalizeText(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (std::size_t pos = 0; pos < s.size();) {
    const bool first = pos == 0;
    const char32_t c = DecodePoint(s, &pos);
    AppendPoint(first ? UpperPoint(c) : LowerPoint(c), &out);
  }
  return out;
}

std::string TitleText(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  bool in_word = false;
  for (std::size_t pos = 0; pos < s.size();) {
    const char32_t c = DecodePoint(s, &pos);
    AppendPoint(in_word ? LowerPoint(c) : UpperPoint(c), &out);
    in_word = IsCasedPoint(c);
  }
  return out;
}

}  // namespace hearth::jinja
