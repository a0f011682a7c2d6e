#include "text/split/split_patterns.h"

#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace hearth {
namespace {

constexpr std::string_view kGpt2Short =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S))";

// Classes of characters by position in one valid text.
class Reader {
 public:
  explicit Reader(std::string_view text)
      : p_(text.data()), size_(text.size()), latin_(CharBitsTable::Latin()) {}

  std::size_t size() const { return size_; }
  // '\0' at the end.
  char ByteAt(std::size_t i) const { return i < size_ ? p_[i] : '\0'; }

  // Bits of the character at `i`, and where it ends. REQUIRES: i < size().
  unsigned At(std::size_t i, std::size_t* end) const {
    const auto b = static_cast<unsigned char>(p_[i]);
    if (b < 0x80) {
      *end = i + 1;
      return latin_[b].load(std::memory_order_relaxed);
    }
    std::size_t length;
    const char32_t code = DecodeValidUtf8(p_ + i, &length);
    *end = i + length;
    return CharBits(code);
  }

  // The end of the run, from `i` on, of characters with any of `wanted`.
  std::size_t Run(std::size_t i, unsigned wanted) const {
    std::size_t end;
    while (i < size_ && (At(i, &end) & wanted) != 0) i = end;
    return i;
  }
  // The same for characters with none of `unwanted`.
  std::size_t RunWithout(std::size_t i, unsigned unwanted) const {
    std::size_t end;
    while (i < size_ && (At(i, &end) & unwanted) == 0) i = end;
    return i;
  }

 private:
  const char* p_;
  std::size_t size_;
  const CharBitsTable::Entry* latin_;
};

constexpr unsigned kLetterOrNumber = kCharLetter | kCharNumber;
constexpr unsigned kNotOther = kCharSpace | kLetterOrNumber;
constexpr unsigned kLetterOrMark = kCharLetter | kCharMark;

// The end of 's 't 're 've 'm 'll 'd at `i`, or `i`. With `fold` in any case;
// U+017F (long s) folds to s.
std::size_t Contraction(const Reader& in, std::size_t i, bool fold) {
  if (in.ByteAt(i) != '\'') return i;
  const auto lower = [&](std::size_t at) {
    const char c = in.ByteAt(at);
    return fold && c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  };
  const char a = lower(i + 1);
  if (a == 's' || a == 't' || a == 'm' || a == 'd') return i + 2;
  const char b = lower(i + 2);
  if ((a == 'r' && b == 'e') || (a == 'v' && b == 'e') ||
      (a == 'l' && b == 'l')) {
    return i + 3;
  }
  if (fold && a == '\xC5' && in.ByteAt(i + 2) == '\xBF') return i + 3;
  return i;
}

// `\s+(?!\S)|\s+` at a white-space character: the run, less its last character
// when something follows.
std::size_t Spaces(const Reader& in, std::size_t start) {
  std::size_t i = start, last = start, end;
  while (i < in.size() && (in.At(i, &end) & kCharSpace) != 0) {
    last = i;
    i = end;
  }
  return i < in.size() && last > start ? last : i;
}

// `\s*[\r\n]+|\s+(?!\S)|\s+`: up to the last line end of the run, if any.
std::size_t SpacesOrLines(const Reader& in, std::size_t start) {
  std::size_t i = start, last = start, line_end = start, end;
  while (i < in.size()) {
    const unsigned bits = in.At(i, &end);
    if ((bits & kCharSpace) == 0) break;
    last = i;
    i = end;
    if ((bits & kCharNewline) != 0) line_end = i;
  }
  if (line_end > start) return line_end;
  return i < in.size() && last > start ? last : i;
}

std::size_t Numbers(const Reader& in, std::size_t i, int n_max) {
  std::size_t end;
  for (int n = 0; n < n_max && i < in.size(); ++n) {
    if ((in.At(i, &end) & kCharNumber) == 0) break;
    i = end;
  }
  return i;
}

std::size_t NextGpt2(const Reader& in, std::size_t start) {
  std::size_t end;
  unsigned bits = in.At(start, &end);
  std::size_t i = start;
  if (in.ByteAt(start) == ' ' && end < in.size()) {
    std::size_t next_end;
    const unsigned next = in.At(end, &next_end);
    if ((next & kCharSpace) == 0) {
      i = end;
      bits = next;
      end = next_end;
    }
  } else if (in.ByteAt(start) == '\'') {
    const std::size_t contraction = Contraction(in, start, /*fold=*/false);
    if (contraction > start) return contraction;
  }
  if ((bits & kCharLetter) != 0) return in.Run(end, kCharLetter);
  if ((bits & kCharNumber) != 0) return in.Run(end, kCharNumber);
  if ((bits & kCharSpace) == 0) return in.RunWithout(end, kNotOther);
  return Spaces(in, i);
}

// What cl100k and o200k share after their words: numbers, other characters
// with the line ends (and slashes) behind them, white space. `not_other`: bits
// of characters that are no others.
std::size_t NextRest(const Reader& in, std::size_t start, unsigned bits,
                     std::size_t end, int digits, bool slash,
                     unsigned not_other = kNotOther) {
  if ((bits & kCharNumber) != 0) return Numbers(in, start, digits);
  std::size_t other_end = 0;
  if ((bits & not_other) == 0) {
    other_end = end;
  } else if (in.ByteAt(start) == ' ' && end < in.size()) {
    std::size_t next_end;
    if ((in.At(end, &next_end) & not_other) == 0) other_end = next_end;
  }
  if (other_end == 0) return SpacesOrLines(in, start);
  std::size_t i = in.RunWithout(other_end, not_other);
  while (in.ByteAt(i) == '\r' || in.ByteAt(i) == '\n' ||
         (slash && in.ByteAt(i) == '/')) {
    ++i;
  }
  return i;
}

// `letters`: bits of what words are made of.
std::size_t NextCl100k(const Reader& in, std::size_t start, int digits,
                       unsigned letters = kCharLetter) {
  std::size_t end;
  const unsigned bits = in.At(start, &end);
  if ((bits & letters) != 0) return in.Run(end, letters);
  if ((bits & (kCharNumber | kCharNewline)) == 0 && end < in.size()) {
    const std::size_t contraction = Contraction(in, start, /*fold=*/true);
    if (contraction > start) return contraction;
    std::size_t next_end;
    if ((in.At(end, &next_end) & letters) != 0) {
      return in.Run(next_end, letters);
    }
  }
  return NextRest(in, start, bits, end, digits, /*slash=*/false,
                  kNotOther | letters);
}

// [upperish]*[lowerish]+ at `start`, as a backtracking engine finds it; 0: no.
std::size_t LowerWord(const Reader& in, std::size_t start) {
  std::size_t i = start, both_end = 0, end;
  while (i < in.size()) {
    const unsigned bits = in.At(i, &end);
    if ((bits & kCharUpperish) == 0) break;
    i = end;
    if ((bits & kCharLowerish) != 0) both_end = i;
  }
  const std::size_t lower_end = in.Run(i, kCharLowerish);
  return lower_end > i ? lower_end : both_end;
}

// [upperish]+[lowerish]* at `start`; 0: no.
std::size_t UpperWord(const Reader& in, std::size_t start) {
  const std::size_t i = in.Run(start, kCharUpperish);
  return i > start ? in.Run(i, kCharLowerish) : 0;
}

std::size_t NextO200k(const Reader& in, std::size_t start, int digits,
                      bool contractions) {
  std::size_t end;
  const unsigned bits = in.At(start, &end);
  const bool prefix =
      (bits & (kLetterOrNumber | kCharNewline)) == 0 && end < in.size();
  std::size_t word = prefix ? LowerWord(in, end) : 0;
  if (word == 0) word = LowerWord(in, start);
  if (word == 0 && prefix) word = UpperWord(in, end);
  if (word == 0) word = UpperWord(in, start);
  if (word != 0) {
    return contractions ? Contraction(in, word, /*fold=*/true) : word;
  }
  return NextRest(in, start, bits, end, digits, /*slash=*/true);
}

}  // namespace

std::optional<SplitPattern> RecognizePattern(std::string_view pattern) {
  if (pattern == kGpt2Text || pattern == kGpt2Short) {
    return SplitPattern::kGpt2;
  }
  if (pattern == kCl100kText) return SplitPattern::kCl100k;
  if (pattern == kCl100kDigitText) return SplitPattern::kCl100kDigit;
  if (pattern == kO200kText) return SplitPattern::kO200k;
  if (pattern == kTekkenText) return SplitPattern::kTekken;
  if (pattern == kQwen35Text) return SplitPattern::kQwen35;
  return std::nullopt;
}

std::string_view PatternText(SplitPattern pattern) {
  switch (pattern) {
    case SplitPattern::kGpt2:
      return kGpt2Text;
    case SplitPattern::kCl100k:
      return kCl100kText;
    case SplitPattern::kCl100kDigit:
      return kCl100kDigitText;
    case SplitPattern::kO200k:
      return kO200kText;
    case SplitPattern::kTekken:
      return kTekkenText;
    case SplitPattern::kQwen35:
      return kQwen35Text;
  }
  return {};
}

std::size_t NextPiece(SplitPattern pattern, std::string_view text,
                      std::size_t start) {
  const Reader in(text);
  switch (pattern) {
    case SplitPattern::kGpt2:
      return NextGpt2(in, start);
    case SplitPattern::kCl100k:
      return NextCl100k(in, start, 3);
    case SplitPattern::kCl100kDigit:
      return NextCl100k(in, start, 1);
    case SplitPattern::kO200k:
      return NextO200k(in, start, 3, /*contractions=*/true);
    case SplitPattern::kTekken:
      return NextO200k(in, start, 1, /*contractions=*/false);
    case SplitPattern::kQwen35:
      return NextCl100k(in, start, 1, kLetterOrMark);
  }
  return text.size();
}

}  // namespace hearth
