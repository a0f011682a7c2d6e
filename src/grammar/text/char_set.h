// Sets of code points, and how a machine takes one of them.
#pragma once

#include <utility>
#include <vector>

#include "grammar/automaton/automaton.h"

namespace hearth::grammar {

class CharSet {
 public:
  static constexpr char32_t kLast = 0x10FFFF;
  using Range = std::pair<char32_t, char32_t>;  // both ends belong to it

  CharSet() = default;
  CharSet(std::initializer_list<Range> ranges);
  static CharSet All() { return {{0, kLast}}; }

  void Add(char32_t first, char32_t last);
  void Add(const CharSet& other);
  CharSet Complement() const;
  CharSet Without(const CharSet& other) const;
  bool Has(char32_t code) const;
  bool empty() const { return ranges_.empty(); }
  // Ascending, apart from each other.
  const std::vector<Range>& ranges() const { return ranges_; }

 private:
  void Normalize();
  std::vector<Range> ranges_;
};

// One of the set as UTF-8. REQUIRES: !set.empty().
Fragment RawChar(Automaton& automaton, const CharSet& set);

// One of the set as it stands inside a JSON string: quotes, backslashes and
// control characters in their shortest escape. REQUIRES: !set.empty().
Fragment JsonChar(Automaton& automaton, const CharSet& set);

}  // namespace hearth::grammar
