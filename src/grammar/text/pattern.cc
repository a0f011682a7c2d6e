#include "grammar/text/pattern.h"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "grammar/text/char_set.h"
#include "grammar/text/scanner.h"

namespace hearth::grammar {
namespace {

constexpr int kNestingMax = 100;
constexpr int kRepeatMax = 10000;

const CharSet& Digits() {
  static const CharSet kSet = {{'0', '9'}};
  return kSet;
}
const CharSet& WordChars() {
  static const CharSet kSet = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};
  return kSet;
}
const CharSet& Spaces() {
  static const CharSet kSet = {
      {'\t', '\r'},     {' ', ' '},       {0xA0, 0xA0},     {0x1680, 0x1680},
      {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F}, {0x205F, 0x205F},
      {0x3000, 0x3000}, {0xFEFF, 0xFEFF}};
  return kSet;
}
const CharSet& LineEnds() {
  static const CharSet kSet = {{'\n', '\n'}, {'\r', '\r'}, {0x2028, 0x2029}};
  return kSet;
}

class PatternReader {
 public:
  PatternReader(Automaton& automaton, std::string_view pattern)
      : automaton_(automaton),
        pattern_(pattern),
        scan_(pattern, "the pattern \"" + std::string(pattern) + "\"") {}

  Result<Fragment> Read() {
    HEARTH_ASSIGN(const Fragment whole, ReadAlternatives());
    if (!scan_.AtEnd()) return scan_.Wrong("an unmatched )");
    return whole;
  }

 private:
  Error Unsupported(const std::string& what) const {
    Error error = scan_.Wrong(what + " is not supported");
    error.code = Code::kUnsupported;
    return error;
  }

  Fragment Anything() {
    return automaton_.Star(JsonChar(automaton_, CharSet::All()));
  }

  // The outermost alternatives, each with its own anchors.
  Result<Fragment> ReadAlternatives() {
    std::vector<Fragment> choices;
    do {
      Fragment one = scan_.Take('^') ? automaton_.Empty() : Anything();
      HEARTH_ASSIGN(const Fragment body, ReadSequence(0));
      one = automaton_.Sequence(one, body);
      if (!scan_.Take('$')) one = automaton_.Sequence(one, Anything());
      choices.push_back(one);
    } while (scan_.Take('|'));
    return automaton_.Choice(choices);
  }

  Result<Fragment> ReadGroup(int depth) {
    if (depth > kNestingMax) return scan_.Wrong("groups nest too deep");
    if (scan_.Take("?:")) {
    } else if (scan_.Peek() == '?') {
      // (?<name>...) captures; (?=, (?!, (?<=, (?<! look around.
      if (scan_.Peek(1) != '<' || scan_.Peek(2) == '=' ||
          scan_.Peek(2) == '!') {
        return Unsupported("a group that begins with (?" +
                           std::string(1, scan_.Peek(1)));
      }
      while (!scan_.AtEnd() && !scan_.Take('>')) scan_.Skip();
    }
    std::vector<Fragment> choices;
    do {
      HEARTH_ASSIGN(const Fragment one, ReadSequence(depth + 1));
      choices.push_back(one);
    } while (scan_.Take('|'));
    if (!scan_.Take(')')) return scan_.Wrong("expected )");
    return automaton_.Choice(choices);
  }

  Result<Fragment> ReadSequence(int depth) {
    Fragment whole = automaton_.Empty();
    while (!scan_.AtEnd() && scan_.Peek() != '|' && scan_.Peek() != ')') {
      // At the end of the outermost level the caller takes it.
      if (scan_.Peek() == '$') {
        if (depth == 0 && (scan_.Peek(1) == '\0' || scan_.Peek(1) == '|'))
          break;
        return Unsupported("$ inside a pattern");
      }
      HEARTH_ASSIGN(Fragment item, ReadItem(depth));
      HEARTH_ASSIGN(item, ReadRepetition(item));
      whole = automaton_.Sequence(whole, item);
    }
    return whole;
  }

  Result<Fragment> ReadItem(int depth) {
    if (scan_.Take('(')) return ReadGroup(depth);
    CharSet set;
    if (scan_.Take('[')) {
      HEARTH_ASSIGN(set, ReadClass());
    } else if (scan_.Take('.')) {
      set = LineEnds().Complement();
    } else if (scan_.Take('\\')) {
      HEARTH_ASSIGN(set, ReadEscape(/*in_class=*/false));
    } else {
      const char c = scan_.Peek();
      if (c == '*' || c == '+' || c == '?') {
        return scan_.Wrong("nothing to repeat");
      }
      if (c == '^') return Unsupported("^ inside a pattern");
      HEARTH_ASSIGN(const char32_t code, scan_.TakeChar());
      set.Add(code, code);
    }
    if (set.empty()) return scan_.Wrong("a class without characters");
    return JsonChar(automaton_, set);
  }

  Result<CharSet> ReadEscape(bool in_class) {
    const char c = scan_.Peek();
    scan_.Skip();
    const auto one = [](char32_t code) { return CharSet{{code, code}}; };
    switch (c) {
      case 'd':
        return Digits();
      case 'D':
        return Digits().Complement();
      case 'w':
        return WordChars();
      case 'W':
        return WordChars().Complement();
      case 's':
        return Spaces();
      case 'S':
        return Spaces().Complement();
      case 'n':
        return one('\n');
      case 'r':
        return one('\r');
      case 't':
        return one('\t');
      case 'f':
        return one('\f');
      case 'v':
        return one('\v');
      case '0':
        return one(0);
      case 'x':
      case 'u': {
        HEARTH_ASSIGN(const char32_t code, scan_.TakeHex(c == 'x' ? 2 : 4));
        return one(code);
      }
      case 'b':
        if (in_class) return one('\b');
        return Unsupported("\\b");
      default:
        break;
    }
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
        (c >= '1' && c <= '9') || c == '\0') {
      return Unsupported(std::string("\\") + c);
    }
    return one(static_cast<unsigned char>(c));
  }

  Result<CharSet> ReadClassMember() {
    if (scan_.Take('\\')) return ReadEscape(/*in_class=*/true);
    HEARTH_ASSIGN(const char32_t code, scan_.TakeChar());
    return CharSet{{code, code}};
  }

  Result<CharSet> ReadClass() {
    const bool negated = scan_.Take('^');
    CharSet set;
    while (!scan_.Take(']')) {
      if (scan_.AtEnd()) return scan_.Wrong("a class without ]");
      HEARTH_ASSIGN(const CharSet first, ReadClassMember());
      if (scan_.Peek() != '-' || scan_.Peek(1) == ']') {
        set.Add(first);
        continue;
      }
      scan_.Skip();
      HEARTH_ASSIGN(const CharSet last, ReadClassMember());
      const char32_t a = first.ranges().front().first;
      const char32_t b = last.ranges().front().second;
      if (a > b) return scan_.Wrong("a range runs backwards");
      set.Add(a, b);
    }
    return negated ? set.Complement() : set;
  }

  Result<Fragment> ReadRepetition(Fragment item) {
    int n_min = 0;
    int n_max = -1;
    if (scan_.Take('*')) {
    } else if (scan_.Take('+')) {
      n_min = 1;
    } else if (scan_.Take('?')) {
      n_max = 1;
    } else if (scan_.Peek() == '{' && scan_.Peek(1) >= '0' &&
               scan_.Peek(1) <= '9') {
      scan_.Skip();
      n_min = scan_.TakeNumber().value_or(0);
      n_max = n_min;
      if (scan_.Take(',')) n_max = scan_.TakeNumber().value_or(-1);
      if (!scan_.Take('}')) return scan_.Wrong("expected }");
      if (n_max >= 0 && n_max < n_min) return scan_.Wrong("bounds in disorder");
      if (std::max(n_min, n_max) > kRepeatMax) {
        return Unsupported("more than " + std::to_string(kRepeatMax) +
                           " repetitions");
      }
    } else {
      return item;
    }
    scan_.Take('?');  // what is taken first makes no difference here
    if (n_min == 0 && n_max < 0) return automaton_.Star(item);
    if (n_min == 1 && n_max < 0) return automaton_.Plus(item);
    if (n_min == 0 && n_max == 1) return automaton_.Optional(item);
    return automaton_.Repeat(automaton_.Close(item), n_min, n_max);
  }

  Automaton& automaton_;
  std::string_view pattern_;
  Scanner scan_;
};

}  // namespace

Result<Fragment> PatternInJson(Automaton& automaton, std::string_view pattern) {
  return PatternReader(automaton, pattern).Read();
}

}  // namespace hearth::grammar
