// Reads a grammar's text character by character and knows where it is.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "hearth/result.h"

namespace hearth::grammar {

class Scanner {
 public:
  // `what` starts every message.
  Scanner(std::string_view text, std::string what)
      : text_(text), what_(std::move(what)) {}

  bool AtEnd() const { return position_ >= text_.size(); }
  // The byte at the position, or `ahead` bytes further; 0 at the end.
  char Peek(std::size_t ahead = 0) const {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  bool Take(char c) {
    if (AtEnd() || Peek() != c) return false;
    ++position_;
    return true;
  }
  bool Take(std::string_view word) {
    if (text_.substr(position_, word.size()) != word) return false;
    position_ += word.size();
    return true;
  }
  void Skip(std::size_t n = 1) { position_ += n; }
  std::size_t position() const { return position_; }
  std::string_view From(std::size_t begin) const {
    return text_.substr(begin, position_ - begin);
  }
  // A whole character. kInvalidArgument when the text is not UTF-8 here.
  Result<char32_t> TakeChar();
  // A number of at most 9 digits; none when there is no digit.
  std::optional<int> TakeNumber();
  // Exactly `n` hexadecimal digits.
  Result<char32_t> TakeHex(int n);

  // kInvalidArgument: what is wrong, with line and column.
  Error Wrong(const std::string& problem) const;

 private:
  std::string_view text_;
  std::string what_;
  std::size_t position_ = 0;
};

}  // namespace hearth::grammar
