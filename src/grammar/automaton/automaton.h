// A grammar as a machine over bytes: states, edges that take a byte, and calls
// that run another part of the machine and come back.
//
// A call is what makes it more than a finite automaton: a matcher keeps a stack
// of the states to come back to. States may be filled in late: an object whose
// members may come in any order has a state for each set of members seen, far
// too many to make before it is known which of them a text visits.
//
// Threads  none; a Grammar protects the machine that its matchers share.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string_view>
#include <vector>

#include "hearth/result.h"

namespace hearth::grammar {

using StateId = std::int32_t;

// Takes any byte of [first, last].
struct ByteEdge {
  std::uint8_t first, last;
  StateId to;
};

// Runs the machine from `callee` to one of its final states, then goes on at
// `back`.
struct CallEdge {
  StateId callee, back;
};

struct State {
  std::vector<ByteEdge> bytes;
  std::vector<CallEdge> calls;
  std::vector<StateId> empty;  // goes on there without taking anything
  bool final = false;          // the call (or the text) may end here
  // This state and `twin` take the same texts of at most `twin_bytes` bytes: a
  // counted repetition far from its end is like an endless one, whose masks are
  // known already. -1: no twin.
  StateId twin = -1;
  int twin_bytes = 0;
};

// The two ends of a piece under construction. Nothing leaves `out` yet.
struct Fragment {
  StateId in, out;
};

class Automaton {
 public:
  // More states than any sensible grammar has; adding beyond it sets full().
  static constexpr std::size_t kStatesMax = 1 << 20;

  StateId AddState();
  // A state whose edges `fill` adds when a matcher first comes to it.
  StateId AddLateState(std::function<void(Automaton&, StateId)> fill);
  // Fills it in if that is still to do.
  const State& Visit(StateId id);
  // For builders. REQUIRES: 0 <= id < size().
  State& at(StateId id) { return states_[static_cast<std::size_t>(id)]; }
  std::size_t size() const { return states_.size(); }
  bool full() const { return states_.size() >= kStatesMax; }

  void AddEdge(StateId from, std::uint8_t first, std::uint8_t last,
               StateId to) {
    at(from).bytes.push_back({first, last, to});
  }
  void AddEmpty(StateId from, StateId to) { at(from).empty.push_back(to); }
  void AddCall(StateId from, StateId callee, StateId back) {
    at(from).calls.push_back({callee, back});
  }

  // --- Pieces ----------------------------------------------------------------
  Fragment Empty();
  Fragment Literal(std::string_view bytes);
  // One code point of [first, last], as UTF-8. Surrogates are left out.
  Fragment CodePoints(char32_t first, char32_t last);
  Fragment Call(StateId callee);
  Fragment Sequence(Fragment a, Fragment b);
  // REQUIRES: not empty.
  Fragment Choice(const std::vector<Fragment>& of);
  Fragment Optional(Fragment a);
  Fragment Star(Fragment a);  // any number of times
  Fragment Plus(Fragment a);  // once or more
  // `callee` n_min to n_max times; n_max -1: without end.
  Fragment Repeat(StateId callee, int n_min, int n_max);
  // Makes `out` final and gives the start, for calls.
  StateId Close(Fragment fragment);

 private:
  std::deque<State> states_;  // a deque: references survive growth
  std::vector<std::pair<StateId, std::function<void(Automaton&, StateId)>>>
      late_;
};

}  // namespace hearth::grammar
