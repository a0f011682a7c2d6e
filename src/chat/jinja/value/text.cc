#include "chat/jinja/value/text.h"

#include <utf8proc.h>

#include <algorithm>

namespace hearth::jinja {
namespace {

constexpr char32_t kEscapeBase = 0xDC00;

// Length of a well-formed sequence at `pos`, or 0.
std::size_t SequenceLength(std::string_view s, std::size_t pos,
                           char32_t* point) {
  const auto* at = reinterpret_cast<const utf8proc_uint8_t*>(s.data()) + pos;
  if (*at < 0x80) {
    *point = *at;
    return 1;
  }
  // Four bytes are the longest there are.
  const std::size_t n = std::min<std::size_t>(s.size() - pos, 4);
  utf8proc_int32_t code = 0;
  const auto length =
      utf8proc_iterate(at, static_cast<utf8proc_ssize_t>(n), &code);
  if (length <= 0) return 0;
  *point = static_cast<char32_t>(code);
  return static_cast<std::size_t>(length);
}

bool InRange(char32_t c, char32_t low, char32_t high) {
  return c >= low && c <= high;
}

}  // namespace

char32_t DecodePoint(std::string_view s, std::size_t* pos) {
  char32_t point = 0;
  const std::size_t length = SequenceLength(s, *pos, &point);
  if (length == 0) {
    point = kEscapeBase + static_cast<unsigned char>(s[*pos]);
    *pos += 1;
    return point;
  }
  *pos += length;
  return point;
}

void AppendPoint(char32_t point, std::string* out) {
  if (point < 0x80) {
    out->push_back(static_cast<char>(point));
    return;
  }
  if (InRange(point, kEscapeBase + 0x80, kEscapeBase + 0xFF)) {
    out->push_back(static_cast<char>(point - kEscapeBase));
    return;
  }
  if (InRange(point, 0xD800, 0xDFFF) || point > 0x10FFFF) point = 0xFFFD;
  utf8proc_uint8_t bytes[4];
  const auto n =
      utf8proc_encode_char(static_cast<utf8proc_int32_t>(point), bytes);
  out->append(reinterpret_cast<const char*>(bytes),
              static_cast<std::size_t>(n));
}

std::size_t FindInvalidUtf8(std::string_view s) {
  for (std::size_t pos = 0; pos < s.size();) {
    char32_t point = 0;
    const std::size_t length = SequenceLength(s, pos, &point);
    if (length == 0) return pos;
    pos += length;
  }
  return std::string_view::npos;
}

std::size_t CountPoints(std::string_view s) {
  std::size_t count = 0;
  for (std::size_t pos = 0; pos < s.size(); ++count) {
    if (static_cast<unsigned char>(s[pos]) < 0x80) {
      ++pos;
    } else {
      DecodePoint(s, &pos);
    }
  }
  return count;
}

std::size_t PointOffset(std::string_view s, std::size_t index) {
  std::size_t pos = 0;
  for (; index > 0 && pos < s.size(); --index) DecodePoint(s, &pos);
  return pos;
}

std::u32string ToPoints(std::string_view s) {
  std::u32string points;
  points.reserve(s.size());
  for (std::size_t pos = 0; pos < s.size();) {
    points.push_back(DecodePoint(s, &pos));
  }
  return points;
}

std::string FromPoints(const std::u32string& points) {
  std::string out;
  out.reserve(points.size());
  for (const char32_t point : points) AppendPoint(point, &out);
  return out;
}

bool IsSpacePoint(char32_t c) {
  return InRange(c, 0x09, 0x0D) || InRange(c, 0x1C, 0x20) || c == 0x85 ||
         c == 0xA0 || c == 0x1680 || InRange(c, 0x2000, 0x200A) ||
         c == 0x2028 || c == 0x2029 || c == 0x202F || c == 0x205F ||
         c == 0x3000;
}

bool IsAllSpace(std::string_view s) {
  for (std::size_t pos = 0; pos < s.size();) {
    if (!IsSpacePoint(DecodePoint(s, &pos))) return false;
  }
  return true;
}

std::string_view StripText(std::string_view s, std::string_view chars,
                           bool left, bool right) {
  std::u32string set = ToPoints(chars);
  std::sort(set.begin(), set.end());
  const auto strips = [&](char32_t c) {
    return chars.empty() ? IsSpacePoint(c)
                         : std::binary_search(set.begin(), set.end(), c);
  };
  while (left && !s.empty()) {
    std::size_t pos = 0;
    if (!strips(DecodePoint(s, &pos))) break;
    s.remove_prefix(pos);
  }
  while (right && !s.empty()) {
    // The last code point starts at most four bytes before the end.
    std::size_t start = s.size() - 1;
    const std::size_t lowest = s.size() >= 4 ? s.size() - 4 : 0;
    for (std::size_t at = lowest; at < s.size() - 1; ++at) {
      char32_t point = 0;
      if (SequenceLength(s, at, &point) == s.size() - at) {
        start = at;
        break;
      }
    }
    std::size_t pos = start;
    if (!strips(DecodePoint(s, &pos))) break;
    s.remove_suffix(s.size() - start);
  }
  return s;
}

std::string EscapeHtml(std::string_view s) {
  std::string out;
  out.reserve(s.size());
  for (const char c : s) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '\'':
        out += "&#39;";
        break;
      case '"':
        out += "&#34;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace hearth::jinja
