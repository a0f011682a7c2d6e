#include "chat/jinja/value/text.h"

#include <algorithm>

namespace hearth::jinja {
namespace {

constexpr char32_t kEscapeBase = 0xDC00;

// Length of a well-formed sequence at `pos`, or 0.
std::size_t SequenceLength(std::string_view s, std::size_t pos,
                           char32_t* point) {
  const auto byte = [&](std::size_t i) {
    return static_cast<unsigned char>(s[pos + i]);
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    *point = lead;
    return 1;
  }
  std::size_t length = 0;
  char32_t value = 0;
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
    value = lead & 0x1F;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    value = lead & 0x0F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    value = lead & 0x07;
  } else {
    return 0;
  }
  if (s.size() - pos < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xC0) != 0x80) return 0;
    value = (value << 6) | (byte(i) & 0x3Fu);
  }
  const bool too_short =
      (length == 3 && value < 0x800) || (length == 4 && value < 0x10000);
  const bool surrogate = value >= 0xD800 && value <= 0xDFFF;
  if (too_short || surrogate || value > 0x10FFFF) return 0;
  *point = value;
  return length;
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
  const auto put = [&](char32_t b) { out->push_back(static_cast<char>(b)); };
  if (InRange(point, kEscapeBase + 0x80, kEscapeBase + 0xFF)) {
    put(point - kEscapeBase);
    return;
  }
  if (InRange(point, 0xD800, 0xDFFF) || point > 0x10FFFF) point = 0xFFFD;
  if (point < 0x80) {
    put(point);
  } else if (point < 0x800) {
    put(0xC0 | (point >> 6));
    put(0x80 | (point & 0x3F));
  } else if (point < 0x10000) {
    put(0xE0 | (point >> 12));
    put(0x80 | ((point >> 6) & 0x3F));
    put(0x80 | (point & 0x3F));
  } else {
    put(0xF0 | (point >> 18));
    put(0x80 | ((point >> 12) & 0x3F));
    put(0x80 | ((point >> 6) & 0x3F));
    put(0x80 | (point & 0x3F));
  }
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

bool IsPrintablePoint(char32_t c) {
  if (c < 0x7F) return c >= 0x20;
  return !(InRange(c, 0x7F, 0xA0) || c == 0xAD || InRange(c, 0x600, 0x605) ||
           c == 0x61C || c == 0x6DD || c == 0x70F || c == 0x1680 ||
           c == 0x180E || InRange(c, 0x2000, 0x200F) ||
           InRange(c, 0x2028, 0x202F) || InRange(c, 0x205F, 0x206F) ||
           c == 0x3000 || InRange(c, 0xD800, 0xF8FF) || c == 0xFEFF ||
           InRange(c, 0xFFF0, 0xFFFB) || (c & 0xFFFE) == 0xFFFE ||
           c >= 0xE0000);
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
