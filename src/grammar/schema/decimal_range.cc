#include "grammar/schema/decimal_range.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>
#include <vector>

namespace hearth::grammar {
namespace {

int CompareMagnitude(const Decimal& a, const Decimal& b) {
  if (a.whole.size() != b.whole.size()) {
    return a.whole.size() < b.whole.size() ? -1 : 1;
  }
  const int whole = a.whole.compare(b.whole);
  if (whole != 0) return whole < 0 ? -1 : 1;
  // Without trailing zeros a prefix is the smaller one.
  const int fraction = a.fraction.compare(b.fraction);
  return fraction < 0 ? -1 : fraction > 0 ? 1 : 0;
}

// Magnitudes between two bounds as a machine over digits. A position is how
// many digits were written, and for each bound whether they equal its own so
// far; once they differ the bound is met or missed for good.
class Magnitudes {
 public:
  Magnitudes(Automaton& automaton, std::optional<Bound> low,
             std::optional<Bound> high, bool integer)
      : automaton_(automaton),
        low_(std::move(low)),
        high_(std::move(high)),
        integer_(integer) {}

  // None when no magnitude fits.
  std::optional<Fragment> Build() {
    in_ = automaton_.AddState();
    out_ = automaton_.AddState();
    int longest = kDigitsMax;
    if (high_.has_value()) {
      longest = std::min(longest, static_cast<int>(high_->value.whole.size()));
    }
    for (int n = 1; n <= longest; ++n) AddWholes(n);
    if (!any_) return std::nullopt;
    return Fragment{in_, out_};
  }

 private:
  // Digit `i` of a bound: before the point, then behind it, zeros at the end.
  static char DigitOf(const Decimal& d, int n_whole, int i) {
    if (i < n_whole) return d.whole[static_cast<std::size_t>(i)];
    const auto at = static_cast<std::size_t>(i - n_whole);
    return at < d.fraction.size() ? d.fraction[at] : '0';
  }

  // Whether a number whose first `i` digits equal the bound's is the bound.
  static bool IsWhole(const Decimal& d, int n_whole, int i) {
    return i >= n_whole + static_cast<int>(d.fraction.size());
  }

  // Numbers with `n` digits before the point.
  void AddWholes(int n) {
    states_.clear();
    n_whole_ = n;
    bool low_equal = false;
    bool high_equal = false;
    if (low_.has_value()) {
      const auto size = static_cast<int>(low_->value.whole.size());
      if (n < size) return;
      low_equal = n == size;
    }
    if (high_.has_value()) {
      high_equal = n == static_cast<int>(high_->value.whole.size());
    }
    Go(in_, 0, low_equal, high_equal);
  }

  // The state behind `i` digits; -1 when nothing in range lies behind it.
  StateId At(int i, bool low_equal, bool high_equal) {
    const auto key = std::tuple(i, low_equal, high_equal);
    const auto it = states_.find(key);
    if (it != states_.end()) return it->second;
    const StateId state = automaton_.AddState();
    states_[key] = state;
    bool alive = false;
    if (MayEnd(i, low_equal, high_equal)) {
      automaton_.AddEmpty(state, out_);
      alive = any_ = true;
    }
    if (i < n_whole_) {
      alive |= Go(state, i, low_equal, high_equal);
    } else if (!integer_ && i < n_whole_ + kDigitsMax) {
      // The point stands before the first digit behind it.
      const StateId from = i == n_whole_ ? automaton_.AddState() : state;
      if (Go(from, i, low_equal, high_equal)) {
        if (from != state) automaton_.AddEdge(state, '.', '.', from);
        alive = true;
      }
    }
    if (!alive) states_[key] = -1;
    return states_[key];
  }

  bool MayEnd(int i, bool low_equal, bool high_equal) const {
    if (i < n_whole_) return false;
    if (low_equal && (!IsWhole(low_->value, n_whole_, i) || low_->exclusive)) {
      return false;
    }
    return !(high_equal && IsWhole(high_->value, n_whole_, i) &&
             high_->exclusive);
  }

  // Edges for digit `i`. Whether any leads into the range.
  bool Go(StateId from, int i, bool low_equal, bool high_equal) {
    bool any = false;
    for (char digit = '0'; digit <= '9'; ++digit) {
      if (i == 0 && digit == '0' && n_whole_ > 1) continue;
      bool low = low_equal;
      bool high = high_equal;
      if (low) {
        const char own = DigitOf(low_->value, n_whole_, i);
        if (digit < own) continue;
        low = digit == own;
      }
      if (high) {
        const char own = DigitOf(high_->value, n_whole_, i);
        if (digit > own) continue;
        high = digit == own;
      }
      const StateId to = At(i + 1, low, high);
      if (to < 0) continue;
      const auto byte = static_cast<std::uint8_t>(digit);
      automaton_.AddEdge(from, byte, byte, to);
      any = true;
    }
    return any;
  }

  Automaton& automaton_;
  std::optional<Bound> low_, high_;
  bool integer_;
  StateId in_ = -1, out_ = -1;
  int n_whole_ = 0;
  bool any_ = false;
  std::map<std::tuple<int, bool, bool>, StateId> states_;
};

// The same bound seen from the other side of zero.
std::optional<Bound> Mirrored(std::optional<Bound> bound) {
  if (bound.has_value()) bound->value.negative = !bound->value.negative;
  return bound;
}

// Numbers of one sign: [low, high] as bounds of the magnitude.
std::optional<Fragment> OneSign(Automaton& automaton, std::optional<Bound> low,
                                std::optional<Bound> high, bool integer) {
  if (high.has_value() && high->value.negative && !high->value.IsZero()) {
    return std::nullopt;
  }
  if (high.has_value() && high->value.IsZero() && high->exclusive) {
    return std::nullopt;
  }
  // Every magnitude is above a negative bound.
  if (low.has_value() && low->value.negative && !low->value.IsZero()) {
    low.reset();
  }
  return Magnitudes(automaton, std::move(low), std::move(high), integer)
      .Build();
}

}  // namespace

Result<Decimal> Decimal::Parse(const std::string& text) {
  Decimal out;
  std::size_t i = 0;
  if (i < text.size() && text[i] == '-') {
    out.negative = true;
    ++i;
  }
  std::string digits;
  int point = -1;
  for (; i < text.size() && text[i] != 'e' && text[i] != 'E'; ++i) {
    if (text[i] == '.') {
      point = static_cast<int>(digits.size());
    } else {
      digits.push_back(text[i]);
    }
  }
  if (point < 0) point = static_cast<int>(digits.size());
  if (i < text.size()) {
    const long exponent = std::strtol(text.c_str() + i + 1, nullptr, 10);
    if (std::labs(exponent) > 400) {
      return {Code::kUnsupported, "the bound " + text + " is too large"};
    }
    point += static_cast<int>(exponent);
  }
  if (point < 0) {
    digits.insert(0, static_cast<std::size_t>(-point), '0');
    point = 0;
  }
  if (static_cast<std::size_t>(point) > digits.size()) {
    digits.append(static_cast<std::size_t>(point) - digits.size(), '0');
  }
  const auto at = static_cast<std::size_t>(point);
  out.whole = digits.substr(0, at);
  out.whole.erase(0,
                  std::min(out.whole.find_first_not_of('0'), out.whole.size()));
  if (out.whole.empty()) out.whole = "0";
  out.fraction = digits.substr(at);
  while (out.fraction.ends_with('0')) out.fraction.pop_back();
  if (out.whole.size() > 40 || out.fraction.size() > 40) {
    return {Code::kUnsupported, "the bound " + text + " has too many digits"};
  }
  return out;
}

int Decimal::Compare(const Decimal& other) const {
  if (IsZero() && other.IsZero()) return 0;
  if (negative != other.negative) return negative ? -1 : 1;
  const int magnitude = CompareMagnitude(*this, other);
  return negative ? -magnitude : magnitude;
}

Result<Fragment> NumberInRange(Automaton& automaton, std::optional<Bound> low,
                               std::optional<Bound> high, bool integer) {
  std::vector<Fragment> choices;
  const auto positive = OneSign(automaton, low, high, integer);
  if (positive.has_value()) choices.push_back(*positive);
  // -x is in [low, high] when x is in [-high, -low]; "-0" is left out.
  std::optional<Bound> smallest = Mirrored(high);
  const Bound zero{.value = {}, .exclusive = true};
  if (!smallest.has_value() || smallest->value.Compare(zero.value) <= 0) {
    smallest = zero;
  }
  const auto negative = OneSign(automaton, smallest, Mirrored(low), integer);
  if (negative.has_value()) {
    choices.push_back(automaton.Sequence(automaton.Literal("-"), *negative));
  }
  if (choices.empty()) {
    return {Code::kInvalidArgument, "no number lies between the bounds"};
  }
  return automaton.Choice(choices);
}

}  // namespace hearth::grammar
