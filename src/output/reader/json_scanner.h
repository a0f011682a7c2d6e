// Checks JSON as its bytes come, and knows where in it they stand. RFC 8259,
// kDepthMax containers deep; a control character in a string is let through,
// since models write line ends there, and Escaped says how it must leave.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hearth::output {

class JsonScanner {
 public:
  static constexpr std::size_t kDepthMax = 100;

  enum class Phase : std::uint8_t {
    kValue,       // a value comes, at the top or in a list
    kFirstItem,   // a value or ]
    kFirstKey,    // a key or }
    kNextKey,     // a key
    kColon,       // behind a key
    kMember,      // a member's value comes
    kInKey,       // inside a key's quotes
    kInString,    // inside another string's
    kInNumber,    // inside a number
    kInWord,      // inside true, false or null
    kAfterValue,  // a comma or the container's end comes
    kDone,        // the whole value is there
    kBad
  };

  // False when the byte cannot stand here; nothing more may come then.
  bool Push(char c);

  Phase phase() const { return phase_; }
  std::size_t depth() const { return containers_.size(); }
  bool done() const { return phase_ == Phase::kDone; }
  // A value at the top that ends only with what follows: a number.
  bool done_if_over() const {
    return done() || (phase_ == Phase::kInNumber && containers_.empty() &&
                      NumberMayEnd());
  }

 private:
  enum class Number : std::uint8_t {
    kSign,
    kZero,
    kWhole,
    kPoint,
    kFraction,
    kE,
    kESign,
    kExponent
  };

  bool BeginValue(char c);
  bool InString(char c);
  bool InNumber(char c);
  bool AfterValue(char c);
  bool Bad();
  void ValueEnded();
  bool NumberMayEnd() const;

  Phase phase_ = Phase::kValue;
  std::string containers_;  // { and [, outermost first
  Number number_ = Number::kSign;
  bool escape_ = false;
  int n_hex_ = 0;          // digits of \u that are to come
  const char* word_ = "";  // what of true, false, null is to come
};

// What is sent of a byte of JSON that JsonScanner took: itself, but a control
// character inside a string as its escape.
std::string Escaped(char c, bool in_string);
// `text` as a part of a JSON string, quotes not included.
std::string JsonStringPart(std::string_view text);

}  // namespace hearth::output
