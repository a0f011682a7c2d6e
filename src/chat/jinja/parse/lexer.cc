#include "chat/jinja/parse/lexer.h"

#include <charconv>
#include <cstring>

#include "chat/jinja/value/literals.h"
#include "chat/jinja/value/text.h"

namespace hearth::jinja {
namespace {

using Type = Token::Type;

bool IsNameByte(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         (c >= '0' && c <= '9') || c == '_' ||
         static_cast<unsigned char>(c) >= 0x80;
}

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

// \r\n and \r become \n; one newline at the end goes.
std::string NormalizeNewlines(const std::string& source) {
  std::string out;
  out.reserve(source.size());
  for (std::size_t i = 0; i < source.size(); ++i) {
    if (source[i] != '\r') {
      out += source[i];
      continue;
    }
    out += '\n';
    if (i + 1 < source.size() && source[i + 1] == '\n') ++i;
  }
  if (!out.empty() && out.back() == '\n') out.pop_back();
  return out;
}

class Lexer {
 public:
  Lexer(std::string source, const std::string& name)
      : source_(std::move(source)), name_(name) {}

  Result<std::vector<Token>> Run() {
    while (pos_ < source_.size()) {
      HEARTH_TRY(LexText());
    }
    Push(Type::kEnd, "");
    return std::move(tokens_);
  }

 private:
  Error Fail(const std::string& message) const {
    return {Code::kCorrupt,
            name_ + ":" + std::to_string(line_) + ": " + message};
  }

  bool At(const char* s, std::size_t pos) const {
    return source_.compare(pos, std::strlen(s), s) == 0;
  }

  void Push(Type type, std::string text) {
    tokens_.push_back({type, line_, std::move(text)});
  }

  void Advance(std::size_t to) {
    for (; pos_ < to; ++pos_) {
      if (source_[pos_] == '\n') ++line_;
    }
  }

  void SkipSpace() {
    while (pos_ < source_.size()) {
      std::size_t next = pos_;
      if (!IsSpacePoint(DecodePoint(source_, &next))) break;
      Advance(next);
    }
  }

  // Emits source_[pos_, end) as `marker` ('-', '+' or 0) and lstrip_blocks
  // leave it.
  void PushText(std::size_t end, char marker, bool lstrips) {
    std::string_view text(source_.data() + pos_, end - pos_);
    const bool starts_line = pos_ == 0 || source_[pos_ - 1] == '\n';
    if (marker == '-') {
      text = StripText(text, {}, false, true);
    } else if (marker != '+' && lstrips) {
      const std::size_t newline = text.rfind('\n');
      const std::size_t start =
          newline == std::string_view::npos ? 0 : newline + 1;
      if ((start > 0 || starts_line) && IsAllSpace(text.substr(start))) {
        text = text.substr(0, start);
      }
    }
    if (!text.empty()) Push(Type::kText, std::string(text));
    Advance(end);
  }

  // The marker behind an opening delimiter at `pos`, or 0.
  char MarkerAt(std::size_t pos) const {
    const char c = pos + 2 < source_.size() ? source_[pos + 2] : '\0';
    return c == '-' || c == '+' ? c : '\0';
  }

  // Text up to the next opening delimiter, and what that opens.
  Result<void> LexText() {
    std::size_t open = source_.find('{', pos_);
    while (open != std::string::npos && !At("{{", open) && !At("{%", open) &&
           !At("{#", open)) {
      open = source_.find('{', open + 1);
    }
    if (open == std::string::npos) {
      PushText(source_.size(), '\0', false);
      return {};
    }
    const char kind = source_[open + 1];
    const char marker = MarkerAt(open);
    PushText(open, marker, kind != '{');
    const std::size_t inside = open + (marker != '\0' ? 3 : 2);
    if (kind == '#') return LexComment(inside);
    if (kind == '%') {
      std::size_t raw_end = 0;
      if (IsRawBegin(inside, &raw_end)) return LexRaw(raw_end);
    }
    Push(kind == '{' ? Type::kVariableBegin : Type::kBlockBegin, "");
    Advance(inside);
    return LexExpression(kind == '{');
  }

  // Moves behind `close` ("%}" or "#}") with the whitespace that its marker
  // eats. REQUIRES: `pos` is where the marker or the delimiter is.
  void EatClose(std::size_t pos) {
    const char marker = source_[pos];
    if (marker == '-' || marker == '+') ++pos;
    Advance(pos + 2);
    if (marker == '-') {
      SkipSpace();
    } else if (marker != '+' && pos_ < source_.size() &&
               source_[pos_] == '\n') {
      Advance(pos_ + 1);
    }
  }

  Result<void> LexComment(std::size_t from) {
    const std::size_t close = source_.find("#}", from);
    if (close == std::string::npos) return Fail("a comment has no end");
    const char before = close > from ? source_[close - 1] : '\0';
    const std::size_t end = before == '-' || before == '+' ? close - 1 : close;
    Advance(end);
    EatClose(end);
    return {};
  }

  // `{% raw %}` and the like, from behind the opening delimiter.
  bool IsRawBegin(std::size_t pos, std::size_t* end) const {
    while (pos < source_.size() &&
           IsSpacePoint(static_cast<unsigned char>(source_[pos]))) {
      ++pos;
    }
    if (!At("raw", pos)) return false;
    pos += 3;
    while (pos < source_.size() &&
           IsSpacePoint(static_cast<unsigned char>(source_[pos]))) {
      ++pos;
    }
    if (!At("%}", pos) && !At("-%}", pos)) return false;
    *end = pos;
    return true;
  }

  Result<void> LexRaw(std::size_t begin_close) {
    const bool trims = source_[begin_close] == '-';
    Advance(begin_close + (trims ? 3 : 2));
    if (trims) SkipSpace();
    for (std::size_t open = source_.find("{%", pos_); open != std::string::npos;
         open = source_.find("{%", open + 1)) {
      const char marker = MarkerAt(open);
      std::size_t pos = open + (marker != '\0' ? 3 : 2);
      while (pos < source_.size() &&
             IsSpacePoint(static_cast<unsigned char>(source_[pos]))) {
        ++pos;
      }
      if (!At("endraw", pos)) continue;
      pos += 6;
      while (pos < source_.size() &&
             IsSpacePoint(static_cast<unsigned char>(source_[pos]))) {
        ++pos;
      }
      if (!At("%}", pos) && !At("-%}", pos) && !At("+%}", pos)) continue;
      PushText(open, marker, true);
      Advance(pos);
      EatClose(pos);
      return {};
    }
    return Fail("a raw block has no end");
  }

  // Tokens up to the closing delimiter; inside brackets `}}` is two braces.
  Result<void> LexExpression(bool is_variable) {
    std::string open_brackets;
    while (true) {
      SkipSpace();
      if (pos_ >= source_.size()) {
        return Fail(is_variable ? "'{{' has no end" : "'{%' has no end");
      }
      if (open_brackets.empty() && TakeEnd(is_variable)) return {};
      const char c = source_[pos_];
      if (IsDigit(c)) {
        HEARTH_TRY(LexNumber());
      } else if (IsNameByte(c)) {
        std::size_t end = pos_;
        while (end < source_.size() && IsNameByte(source_[end])) ++end;
        Push(Type::kName, source_.substr(pos_, end - pos_));
        Advance(end);
      } else if (c == '\'' || c == '"') {
        HEARTH_TRY(LexString(c));
      } else {
        HEARTH_TRY(LexOperator(&open_brackets));
      }
    }
  }

  bool TakeEnd(bool is_variable) {
    if (is_variable) {
      if (At("-}}", pos_)) {
        Push(Type::kVariableEnd, "");
        Advance(pos_ + 3);
        SkipSpace();
        return true;
      }
      if (!At("}}", pos_)) return false;
      Push(Type::kVariableEnd, "");
      Advance(pos_ + 2);
      return true;
    }
    if (!At("%}", pos_) && !At("-%}", pos_) && !At("+%}", pos_)) return false;
    Push(Type::kBlockEnd, "");
    EatClose(pos_);
    return true;
  }

  Result<void> LexNumber() {
    // Behind a dot stands an index, so "a.0.1" has no float in it.
    const bool may_be_float = pos_ == 0 || source_[pos_ - 1] != '.';
    NumberLiteral number;
    if (!ReadNumber(std::string_view(source_).substr(pos_), may_be_float,
                    &number)) {
      return Fail("a number does not fit into 64 bits");
    }
    Push(number.is_float ? Type::kFloat : Type::kInteger, "");
    tokens_.back().int_value = number.int_value;
    tokens_.back().float_value = number.float_value;
    Advance(pos_ + number.length);
    return {};
  }

  Result<void> LexString(char quote) {
    std::size_t end = pos_ + 1;
    while (end < source_.size() && source_[end] != quote) {
      end += source_[end] == '\\' ? 2 : 1;
    }
    if (end >= source_.size()) return Fail("a string has no end");
    std::string text;
    const std::string_view body(source_.data() + pos_ + 1, end - pos_ - 1);
    if (!UnescapeString(body, &text)) {
      return Fail("a string has a malformed escape sequence");
    }
    Push(Type::kString, std::move(text));
    Advance(end + 1);
    return {};
  }

  Result<void> LexOperator(std::string* open_brackets) {
    static constexpr const char* kTwo[] = {"//", "**", "==", "!=", ">=", "<="};
    for (const char* op : kTwo) {
      if (At(op, pos_)) {
        Push(Type::kOperator, op);
        Advance(pos_ + 2);
        return {};
      }
    }
    const char c = source_[pos_];
    if (std::strchr("+-/*%~[](){}><=.:|,;", c) == nullptr || c == '\0') {
      return Fail(std::string("unexpected character '") + c + "'");
    }
    if (c == '(' || c == '[' || c == '{') *open_brackets += c;
    if (c == ')' || c == ']' || c == '}') {
      const char opener = c == ')' ? '(' : c == ']' ? '[' : '{';
      if (open_brackets->empty() || open_brackets->back() != opener) {
        return Fail(std::string("unexpected '") + c + "'");
      }
      open_brackets->pop_back();
    }
    Push(Type::kOperator, std::string(1, c));
    Advance(pos_ + 1);
    return {};
  }

  const std::string source_;
  const std::string& name_;
  std::size_t pos_ = 0;
  int line_ = 1;
  std::vector<Token> tokens_;
};

}  // namespace

Result<std::vector<Token>> Tokenize(const std::string& source,
                                    const std::string& name,
                                    const ChatTemplateLimits& limits) {
  if (source.size() > limits.source_bytes_max) {
    return {Code::kResourceFull, name + ": the template is larger than " +
                                     std::to_string(limits.source_bytes_max) +
                                     " bytes"};
  }
  const std::size_t bad = FindInvalidUtf8(source);
  if (bad != std::string_view::npos) {
    return {Code::kCorrupt,
            name + ": not UTF-8 at byte " + std::to_string(bad)};
  }
  return Lexer(NormalizeNewlines(source), name).Run();
}

}  // namespace hearth::jinja
