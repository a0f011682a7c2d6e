#include "grammar/text/char_set.h"

#include <algorithm>
#include <string>

namespace hearth::grammar {
namespace {

// JSON strings may not hold these as they are.
const CharSet& Escaped() {
  static const CharSet kEscaped = {{0, 0x1F}, {'"', '"'}, {'\\', '\\'}};
  return kEscaped;
}

std::string EscapeOf(char32_t code) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    default:
      break;
  }
  constexpr char kHex[] = "0123456789abcdef";
  return std::string("\\u00") + kHex[code / 16] + kHex[code % 16];
}

}  // namespace

CharSet::CharSet(std::initializer_list<Range> ranges) : ranges_(ranges) {
  Normalize();
}

void CharSet::Normalize() {
  std::sort(ranges_.begin(), ranges_.end());
  std::vector<Range> joined;
  for (const Range& range : ranges_) {
    if (range.first > range.second) continue;
    if (!joined.empty() && range.first <= joined.back().second + 1) {
      joined.back().second = std::max(joined.back().second, range.second);
    } else {
      joined.push_back(range);
    }
  }
  ranges_ = std::move(joined);
}

void CharSet::Add(char32_t first, char32_t last) {
  ranges_.emplace_back(first, last);
  Normalize();
}

void CharSet::Add(const CharSet& other) {
  ranges_.insert(ranges_.end(), other.ranges_.begin(), other.ranges_.end());
  Normalize();
}

CharSet CharSet::Complement() const {
  CharSet out;
  char32_t next = 0;
  for (const Range& range : ranges_) {
    if (range.first > next) out.ranges_.emplace_back(next, range.first - 1);
    next = range.second + 1;
  }
  if (next <= kLast) out.ranges_.emplace_back(next, kLast);
  return out;
}

CharSet CharSet::Without(const CharSet& other) const {
  CharSet gone = Complement();
  gone.Add(other);
  return gone.Complement();
}

bool CharSet::Has(char32_t code) const {
  return std::any_of(ranges_.begin(), ranges_.end(), [&](const Range& range) {
    return range.first <= code && code <= range.second;
  });
}

Fragment RawChar(Automaton& automaton, const CharSet& set) {
  std::vector<Fragment> choices;
  for (const CharSet::Range& range : set.ranges()) {
    choices.push_back(automaton.CodePoints(range.first, range.second));
  }
  return automaton.Choice(choices);
}

Fragment JsonChar(Automaton& automaton, const CharSet& set) {
  std::vector<Fragment> choices;
  const CharSet raw = set.Without(Escaped());
  if (!raw.empty()) choices.push_back(RawChar(automaton, raw));
  for (const CharSet::Range& range : Escaped().ranges()) {
    for (char32_t code = range.first; code <= range.second; ++code) {
      if (set.Has(code)) choices.push_back(automaton.Literal(EscapeOf(code)));
    }
  }
  return automaton.Choice(choices);
}

}  // namespace hearth::grammar
