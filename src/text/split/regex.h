// Split patterns of tokenizer files, run by PCRE2 with its JIT compiler.
//
// The files are written for Oniguruma. Most patterns mean the same in both; the
// constructs that do not are rewritten (\s, \w, \h, line anchors) or refused by
// name (class intersection, nested classes, inline m, possessive intervals).
//
// Errors  Compile: kUnsupported with the pattern. Find: kResourceFull when the
//         step limit is reached, so that hostile text costs bounded time.
// Threads Find may run at once with separate RegexScratch.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "hearth/result.h"

namespace hearth {

// Working memory of matches; one for each thread.
class RegexScratch {
 public:
  RegexScratch();
  ~RegexScratch();
  RegexScratch(RegexScratch&&) noexcept;

 private:
  friend class Regex;
  struct State;
  std::unique_ptr<State> state_;
};

struct RegexMatch {
  bool found = false;
  std::size_t start = 0, end = 0;
};

class Regex {
 public:
  static Result<Regex> Compile(std::string_view pattern,
                               const std::string& what);
  ~Regex();
  Regex(Regex&&) noexcept;
  Regex& operator=(Regex&&) noexcept;

  // The first non-empty match at or after `from`. REQUIRES: valid UTF-8, `from`
  // at a character's start.
  Result<RegexMatch> Find(std::string_view text, std::size_t from,
                          RegexScratch& scratch) const;

 private:
  struct State;
  explicit Regex(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// The pattern as PCRE2 has to read it. Exposed for tests.
Result<std::string> TranslatePattern(std::string_view pattern,
                                     const std::string& what);

}  // namespace hearth
