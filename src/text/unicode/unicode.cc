#include "text/unicode/unicode.h"

#include <utf8proc.h>

#include <algorithm>
#include <vector>

#include "text/unicode/utf8.h"

namespace hearth {
namespace {

std::uint16_t CategoryBits(utf8proc_category_t category) {
  switch (category) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LT:
      return kCharLetter | kCharUpperish | kCharWord;
    case UTF8PROC_CATEGORY_LL:
      return kCharLetter | kCharLowerish | kCharWord;
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return kCharLetter | kCharUpperish | kCharLowerish | kCharWord;
    case UTF8PROC_CATEGORY_MN:
    case UTF8PROC_CATEGORY_MC:
    case UTF8PROC_CATEGORY_ME:
      return kCharMark | kCharUpperish | kCharLowerish | kCharWord;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
      return kCharNumber | kCharWord;
    case UTF8PROC_CATEGORY_NO:
      return kCharNumber;
    case UTF8PROC_CATEGORY_PC:
      return kCharPunct | kCharWord;
    case UTF8PROC_CATEGORY_PD:
    case UTF8PROC_CATEGORY_PS:
    case UTF8PROC_CATEGORY_PE:
    case UTF8PROC_CATEGORY_PI:
    case UTF8PROC_CATEGORY_PF:
    case UTF8PROC_CATEGORY_PO:
      return kCharPunct;
    case UTF8PROC_CATEGORY_SM:
    case UTF8PROC_CATEGORY_SC:
    case UTF8PROC_CATEGORY_SK:
    case UTF8PROC_CATEGORY_SO:
      return kCharSymbol;
    default:
      return 0;
  }
}

bool IsWhiteSpace(char32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 ||
         c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

// Letters of other categories (Other_Alphabetic outside M), and the joiners.
bool IsOddWordChar(char32_t c) {
  return (c >= 0x24B6 && c <= 0x24E9) || c == 0x200C || c == 0x200D ||
         (c >= 0x1F130 && c <= 0x1F149) || (c >= 0x1F150 && c <= 0x1F169) ||
         (c >= 0x1F170 && c <= 0x1F189);
}

std::uint16_t ComputeCharBits(char32_t code) {
  unsigned bits =
      CategoryBits(utf8proc_category(static_cast<utf8proc_int32_t>(code)));
  if (IsWhiteSpace(code)) bits |= kCharSpace;
  if (code == '\r' || code == '\n') bits |= kCharNewline;
  if (IsOddWordChar(code)) bits |= kCharWord;
  return static_cast<std::uint16_t>(bits);
}

int CombiningClass(utf8proc_int32_t code) {
  return utf8proc_get_property(code)->combining_class;
}

// Puts each run of combining marks into canonical order. A stable sort of the
// run, where utf8proc exchanges neighbours: that is quadratic for hostile text.
void OrderMarks(std::vector<utf8proc_int32_t>& codes) {
  std::size_t i = 0;
  while (i < codes.size()) {
    std::size_t end = i;
    while (end < codes.size() && CombiningClass(codes[end]) != 0) ++end;
    if (end - i > 1) {
      std::stable_sort(codes.begin() + static_cast<std::ptrdiff_t>(i),
                       codes.begin() + static_cast<std::ptrdiff_t>(end),
                       [](utf8proc_int32_t a, utf8proc_int32_t b) {
                         return CombiningClass(a) < CombiningClass(b);
                       });
    }
    i = end + 1;
  }
}

}  // namespace

const CharBitsTable::Entry* CharBitsTable::Latin() {
  if (!known_[0].load(std::memory_order_acquire)) Fill(0);
  return bits_;
}

void CharBitsTable::Fill(std::size_t page) {
  for (char32_t c = 0; c < kPageSize; ++c) {
    const auto code = static_cast<char32_t>(page * kPageSize) + c;
    bits_[code].store(ComputeCharBits(code), std::memory_order_relaxed);
  }
  known_[page].store(true, std::memory_order_release);
}

bool IsSurelyNfc(std::string_view text) {
  std::size_t i = 0;
  while (i < text.size()) {
    // Everything below U+0300 (lead bytes up to 0xCB) is inert in NFC.
    if (static_cast<unsigned char>(text[i]) < 0xCC) {
      ++i;
      continue;
    }
    std::size_t length;
    const auto code = static_cast<utf8proc_int32_t>(
        DecodeValidUtf8(text.data() + i, &length));
    i += length;
    if (code >= 0x2010 && code <= 0x2027) continue;  // dashes, quotes, dots
    if (code >= 0x4E00 && code <= 0x9FFF) continue;
    const utf8proc_property_t* property = utf8proc_get_property(code);
    const bool inert = property->combining_class == 0 &&
                       property->decomp_seqindex == UINT16_MAX &&
                       property->comb_index == UINT16_MAX &&
                       !(code >= 0x1160 && code < 0x1200);
    if (!inert) return false;
  }
  return true;
}

std::string Normalize(std::string_view text, NormalForm form) {
  const bool compose = form == NormalForm::kNfc || form == NormalForm::kNfkc;
  const bool compat = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
  const auto options = static_cast<utf8proc_option_t>(
      UTF8PROC_STABLE | UTF8PROC_DECOMPOSE | (compat ? UTF8PROC_COMPAT : 0));
  std::vector<utf8proc_int32_t> codes;
  codes.reserve(text.size());
  int boundary = 0;
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length;
    const auto code = static_cast<utf8proc_int32_t>(
        DecodeValidUtf8(text.data() + i, &length));
    i += length;
    utf8proc_int32_t parts[32];
    const utf8proc_ssize_t n =
        utf8proc_decompose_char(code, parts, 32, options, &boundary);
    if (n < 0 || n > 32) {
      codes.push_back(code);
    } else {
      codes.insert(codes.end(), parts, parts + n);
    }
  }
  OrderMarks(codes);
  if (compose && !codes.empty()) {
    const auto composed =
        static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
    const utf8proc_ssize_t n = utf8proc_normalize_utf32(
        codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), composed);
    if (n >= 0) codes.resize(static_cast<std::size_t>(n));
  }
  std::string out;
  out.reserve(text.size());
  for (const utf8proc_int32_t c : codes) {
    AppendUtf8(out, static_cast<char32_t>(c));
  }
  return out;
}

std::string ToLower(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length;
    const char32_t code = DecodeValidUtf8(text.data() + i, &length);
    i += length;
    if (code == 0x130) {  // the one character whose lower case is two
      out += "i\xCC\x87";
    } else {
      AppendUtf8(out, static_cast<char32_t>(utf8proc_tolower(
                          static_cast<utf8proc_int32_t>(code))));
    }
  }
  return out;
}

std::string StripMarks(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    std::size_t length;
    const char32_t code = DecodeValidUtf8(text.data() + i, &length);
    if ((CharBits(code) & kCharMark) == 0) out += text.substr(i, length);
    i += length;
  }
  return out;
}

}  // namespace hearth
