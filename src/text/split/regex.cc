#include "text/split/regex.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>

#include "text/unicode/utf8.h"

namespace hearth {
namespace {

// Steps of one match attempt. A linear pattern needs a few a character; the
// longest text of one call is a request, not a book.
constexpr std::uint32_t kMatchLimit = 200'000'000;
constexpr std::size_t kJitStackMax = std::size_t{32} << 20;
constexpr std::size_t kPatternMax = 16384;

constexpr std::string_view kSpaceSet =
    "\\t-\\r\\x20\\x85\\xa0\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}"
    "\\x{202f}\\x{205f}\\x{3000}";
constexpr std::string_view kWordSet = "\\p{L}\\p{M}\\p{N}\\p{Pc}";
constexpr std::string_view kHexSet = "0-9a-fA-F";

// Rewrites one pattern, left to right.
class Translator {
 public:
  Translator(std::string_view pattern, const std::string& what)
      : in_(pattern), what_(what) {}

  Result<std::string> Run() {
    while (i_ < in_.size()) {
      const char c = in_[i_];
      if (c == '\\') {
        HEARTH_TRY(Escape());
      } else if (in_class_) {
        HEARTH_TRY(ClassChar(c));
      } else {
        HEARTH_TRY(PlainChar(c));
      }
    }
    return std::move(out_);
  }

 private:
  Error Refuse(const std::string& construct) const {
    return {Code::kUnsupported,
            what_ + ": " + construct + " in the pattern " + std::string(in_)};
  }

  void PutSet(std::string_view set) {
    if (!in_class_) out_ += '[';
    out_ += set;
    if (!in_class_) out_ += ']';
  }

  Result<void> PutNegatedSet(std::string_view set, const char* name) {
    if (in_class_) return Refuse(std::string(name) + " inside a class");
    out_ += "[^";
    out_ += set;
    out_ += ']';
    return {};
  }

  Result<void> Escape() {
    if (i_ + 1 >= in_.size()) return Refuse("a lone backslash");
    const char c = in_[i_ + 1];
    i_ += 2;
    class_start_ = false;
    switch (c) {
      case 's':
        PutSet(kSpaceSet);
        return {};
      case 'S':
        if (in_class_) {
          out_ += "\\S";
          return {};
        }
        return PutNegatedSet(kSpaceSet, "\\S");
      case 'w':
        PutSet(kWordSet);
        return {};
      case 'W':
        return PutNegatedSet(kWordSet, "\\W");
      case 'h':
        PutSet(kHexSet);
        return {};
      case 'H':
        return PutNegatedSet(kHexSet, "\\H");
      case 'G':
      case 'K':
      case 'R':
      case 'X':
      case 'Q':
      case 'E':
      case 'C':
      case 'N':
      case 'O':
      case 'g':
      case 'k':
      case 'y':
      case 'Y':
      case 'Z':
        return Refuse(std::string("\\") + c);
      default:
        out_ += '\\';
        out_ += c;
        if ((c == 'p' || c == 'P' || c == 'x') &&
            in_.substr(i_).starts_with('{')) {  // \p{..}, \P{..}, \x{..}
          const std::size_t end = in_.find('}', i_);
          if (end == std::string_view::npos) return Refuse("an open {");
          out_ += in_.substr(i_, end + 1 - i_);
          i_ = end + 1;
        }
        return {};
    }
  }

  Result<void> ClassChar(char c) {
    if (c == '[') {
      if (i_ + 1 < in_.size() && in_[i_ + 1] == ':') {
        const std::size_t end = in_.find(":]", i_ + 2);
        if (end == std::string_view::npos) return Refuse("an open [: name");
        out_ += in_.substr(i_, end + 2 - i_);
        i_ = end + 2;
        class_start_ = false;
        return {};
      }
      return Refuse("a class within a class");
    }
    if (c == '&' && in_.substr(i_, 2) == "&&") {
      return Refuse("the class intersection &&");
    }
    if (c == ']' && !class_start_) in_class_ = false;
    // A "]" right after the opening one is literal in both dialects.
    class_start_ = class_start_ && c == '^';
    out_ += c;
    ++i_;
    return {};
  }

  Result<void> PlainChar(char c) {
    if (c == '[') {
      in_class_ = true;
      class_start_ = true;
    } else if (c == '(' && in_.substr(i_, 2) == "(?") {
      HEARTH_TRY(CheckGroup());
    } else if (c == '(' && in_.substr(i_, 2) == "(*") {
      return Refuse("a (*VERB)");
    } else if (c == '}' && in_.substr(i_, 2) == "}+") {
      return Refuse("a possessive interval }+");
    }
    out_ += c;
    ++i_;
    return {};
  }

  // Groups whose meaning the dialects share: (?: (?= (?! (?<= (?<! (?> and
  // the flags i and x.
  Result<void> CheckGroup() {
    std::size_t p = i_ + 2;
    if (p >= in_.size()) return Refuse("an open group");
    const char c = in_[p];
    if (c == ':' || c == '=' || c == '!' || c == '>') return {};
    if (c == '<' && p + 1 < in_.size() &&
        (in_[p + 1] == '=' || in_[p + 1] == '!')) {
      return {};
    }
    while (p < in_.size() &&
           (in_[p] == 'i' || in_[p] == 'x' || in_[p] == '-')) {
      ++p;
    }
    if (p > i_ + 2 && p < in_.size() && (in_[p] == ':' || in_[p] == ')')) {
      return {};
    }
    return Refuse("the group " + std::string(in_.substr(i_, p + 1 - i_)));
  }

  std::string_view in_;
  const std::string& what_;
  std::string out_;
  std::size_t i_ = 0;
  bool in_class_ = false;
  bool class_start_ = false;
};

std::string Pcre2Message(int code) {
  std::array<PCRE2_UCHAR, 160> text{};
  pcre2_get_error_message(code, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

}  // namespace

struct RegexScratch::State {
  pcre2_match_data* data = pcre2_match_data_create(1, nullptr);
  pcre2_match_context* context = pcre2_match_context_create(nullptr);
  pcre2_jit_stack* stack = nullptr;
  ~State() {
    pcre2_match_data_free(data);
    pcre2_match_context_free(context);
    pcre2_jit_stack_free(stack);
  }
};

RegexScratch::RegexScratch() = default;
RegexScratch::~RegexScratch() = default;
RegexScratch::RegexScratch(RegexScratch&&) noexcept = default;

struct Regex::State {
  pcre2_code* code = nullptr;
  bool jit = false;
  std::string what, pattern;
  ~State() { pcre2_code_free(code); }
};

Regex::Regex(std::unique_ptr<State> state) : state_(std::move(state)) {}
Regex::~Regex() = default;
Regex::Regex(Regex&&) noexcept = default;
Regex& Regex::operator=(Regex&&) noexcept = default;

Result<std::string> TranslatePattern(std::string_view pattern,
                                     const std::string& what) {
  if (pattern.size() > kPatternMax) {
    return {Code::kUnsupported, what + ": a split pattern of more than " +
                                    std::to_string(kPatternMax) + " bytes"};
  }
  if (!IsValidUtf8(pattern)) {
    return {Code::kCorrupt, what + ": a split pattern is not valid UTF-8"};
  }
  return Translator(pattern, what).Run();
}

Result<Regex> Regex::Compile(std::string_view pattern,
                             const std::string& what) {
  HEARTH_ASSIGN(const std::string translated, TranslatePattern(pattern, what));
  auto state = std::make_unique<State>();
  state->what = what;
  state->pattern = std::string(pattern);
  pcre2_compile_context* context = pcre2_compile_context_create(nullptr);
  pcre2_set_newline(context, PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context, 100);
  int error = 0;
  PCRE2_SIZE where = 0;
  state->code = pcre2_compile(
      reinterpret_cast<PCRE2_SPTR>(translated.data()), translated.size(),
      PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE | PCRE2_NEVER_BACKSLASH_C, &error,
      &where, context);
  pcre2_compile_context_free(context);
  if (state->code == nullptr) {
    return {Code::kUnsupported,
            what + ": the split pattern " + std::string(pattern) +
                " is not understood: " + Pcre2Message(error)};
  }
  state->jit = pcre2_jit_compile(state->code, PCRE2_JIT_COMPLETE) == 0;
  return Regex(std::move(state));
}

Result<RegexMatch> Regex::Find(std::string_view text, std::size_t from,
                               RegexScratch& scratch) const {
  if (scratch.state_ == nullptr) {
    scratch.state_ = std::make_unique<RegexScratch::State>();
    RegexScratch::State& made = *scratch.state_;
    pcre2_set_match_limit(made.context, kMatchLimit);
    made.stack = pcre2_jit_stack_create(32 * 1024, kJitStackMax, nullptr);
    pcre2_jit_stack_assign(made.context, nullptr, made.stack);
  }
  const RegexScratch::State& s = *scratch.state_;
  const auto subject = reinterpret_cast<PCRE2_SPTR>(text.data());
  while (from < text.size()) {
    const int rc = state_->jit
                       ? pcre2_jit_match(state_->code, subject, text.size(),
                                         from, 0, s.data, s.context)
                       : pcre2_match(state_->code, subject, text.size(), from,
                                     PCRE2_NO_UTF_CHECK, s.data, s.context);
    if (rc == PCRE2_ERROR_NOMATCH) return RegexMatch{};
    if (rc < 0) {
      return {Code::kResourceFull,
              state_->what + ": the split pattern " + state_->pattern +
                  " gave up on this text: " + Pcre2Message(rc)};
    }
    const PCRE2_SIZE* offsets = pcre2_get_ovector_pointer(s.data);
    if (offsets[1] > offsets[0])
      return RegexMatch{true, offsets[0], offsets[1]};
    // Empty: look again one character on.
    if (offsets[0] >= text.size()) break;
    from = offsets[0] + Utf8Length(text[offsets[0]]);
  }
  return RegexMatch{};
}

}  // namespace hearth
