// Numbers between bounds, in JSON's decimal notation without an exponent.
#pragma once

#include <optional>
#include <string>

#include "grammar/automaton/automaton.h"
#include "hearth/result.h"

namespace hearth::grammar {

// A decimal number: digits before and behind the point, sign apart.
struct Decimal {
  bool negative = false;
  std::string whole = "0";  // no leading zeros
  std::string fraction;     // no trailing zeros

  bool IsZero() const { return whole == "0" && fraction.empty(); }
  // From JSON's notation; kUnsupported for magnitudes beyond 40 digits.
  static Result<Decimal> Parse(const std::string& text);
  // By value.
  int Compare(const Decimal& other) const;
};

struct Bound {
  Decimal value;
  bool exclusive = false;
};

// All x with low <= x <= high (or < where exclusive), at most `kDigitsMax`
// digits before the point and behind it. kInvalidArgument when there is none.
inline constexpr int kDigitsMax = 16;
Result<Fragment> NumberInRange(Automaton& automaton, std::optional<Bound> low,
                               std::optional<Bound> high, bool integer);

}  // namespace hearth::grammar
