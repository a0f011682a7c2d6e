#include "output/description/tokens.h"

#include <cctype>
#include <optional>

namespace hearth::output {
namespace {

constexpr std::string_view kSigns = "=|()?*+{}[]:,";

bool IsLetter(char c) {
  return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_';
}

std::optional<char> Escaped(char c) {
  switch (c) {
    case 'n':
      return '\n';
    case 't':
      return '\t';
    case '"':
    case '\\':
      return c;
    default:
      return std::nullopt;
  }
}

class Words {
 public:
  explicit Words(std::string_view text) : text_(text) {}

  Result<std::vector<Word>> Read() {
    while (at_ < text_.size()) HEARTH_TRY(One());
    Add(Word::Kind::kLine, "");
    return std::move(words_);
  }

 private:
  void Add(Word::Kind kind, std::string text) {
    words_.push_back({kind, std::move(text), line_});
  }

  void LineEnd() {
    ++at_;
    const bool goes_on = at_ < text_.size() && text_[at_] == ' ';
    if (!goes_on) Add(Word::Kind::kLine, "");
    ++line_;
  }

  Result<void> One() {
    const char c = text_[at_];
    if (c == '\n') {
      LineEnd();
    } else if (c == ' ') {
      ++at_;
    } else if (c == '#') {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (c == '"') {
      return Literal();
    } else if (text_.substr(at_, 2) == "<<" || text_.substr(at_, 2) == ">>") {
      Add(Word::Kind::kSign, std::string(text_.substr(at_, 2)));
      at_ += 2;
    } else if (kSigns.find(c) != std::string_view::npos) {
      Add(Word::Kind::kSign, std::string(1, c));
      ++at_;
    } else if (IsLetter(c)) {
      const std::size_t begin = at_;
      while (at_ < text_.size() &&
             (IsLetter(text_[at_]) || text_[at_] == '-' || text_[at_] == '.' ||
              (text_[at_] >= '0' && text_[at_] <= '9'))) {
        ++at_;
      }
      Add(Word::Kind::kName, std::string(text_.substr(begin, at_ - begin)));
    } else {
      return WrongDescription(line_, "a character that means nothing here");
    }
    return {};
  }

  Result<void> Literal() {
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != '"'; ++at_) {
      if (text_[at_] == '\n') break;
      if (text_[at_] == kTokenStart) {
        return WrongDescription(line_, "a literal is UTF-8");
      }
      if (text_[at_] != '\\') {
        value += text_[at_];
        continue;
      }
      ++at_;
      const auto escaped =
          at_ < text_.size() ? Escaped(text_[at_]) : std::nullopt;
      if (!escaped.has_value()) {
        return WrongDescription(line_, "an unknown escape");
      }
      value += *escaped;
    }
    if (at_ >= text_.size() || text_[at_] != '"') {
      return WrongDescription(line_, "a literal that does not end");
    }
    ++at_;
    if (value.empty()) return WrongDescription(line_, "an empty literal");
    Add(Word::Kind::kLiteral, std::move(value));
    return {};
  }

  static constexpr char kTokenStart = '\xFF';  // marks tokens in programs

  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1;
  std::vector<Word> words_;
};

}  // namespace

Error WrongDescription(int line, const std::string& problem) {
  return {Code::kInvalidArgument,
          "description, line " + std::to_string(line) + ": " + problem};
}

Result<std::vector<Word>> WordsOf(std::string_view text) {
  return Words(text).Read();
}

}  // namespace hearth::output
