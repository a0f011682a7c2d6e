// Rewrites text before it is split: Unicode forms, prefixes, replacements.
// Errors  Make: kUnsupported for a regular expression that is not understood.
//         Apply: kResourceFull from a regular expression.
// Threads const; each thread brings its own RegexScratch.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/result.h"
#include "text/split/regex.h"
#include "text/step.h"

namespace hearth {

class Normalizer {
 public:
  static Result<Normalizer> Make(std::span<const Step> steps,
                                 const std::string& what);

  // The rewritten text: `text` itself when nothing changes, else a view of
  // `storage`. REQUIRES: valid UTF-8.
  Result<std::string_view> Apply(std::string_view text, std::string& storage,
                                 RegexScratch& scratch) const;
  bool empty() const { return steps_.empty(); }

 private:
  struct Runnable {
    Step step;
    std::vector<Regex> regex;  // one for kReplaceRegex
  };
  std::vector<Runnable> steps_;
};

// Every occurrence of `from`, left to right. REQUIRES: !from.empty().
std::string ReplaceAll(std::string_view text, std::string_view from,
                       std::string_view to);
// Every match of `regex`; `to` is taken literally.
Result<std::string> ReplaceMatches(std::string_view text, const Regex& regex,
                                   std::string_view to, RegexScratch& scratch);

}  // namespace hearth
