#include "grammar/automaton/automaton.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "grammar/automaton/utf8_ranges.h"

namespace hearth::grammar {

StateId Automaton::AddState() {
  // A grammar this large is refused by its maker, who asks full(); until then
  // one spare state takes what no longer fits.
  if (full()) return static_cast<StateId>(states_.size() - 1);
  states_.emplace_back();
  return static_cast<StateId>(states_.size() - 1);
}

StateId Automaton::AddLateState(std::function<void(Automaton&, StateId)> fill) {
  const StateId id = AddState();
  late_.emplace_back(id, std::move(fill));
  return id;
}

const State& Automaton::Visit(StateId id) {
  const auto it = std::lower_bound(
      late_.begin(), late_.end(), id,
      [](const auto& entry, StateId wanted) { return entry.first < wanted; });
  if (it != late_.end() && it->first == id && it->second != nullptr) {
    const auto fill = std::exchange(it->second, nullptr);
    fill(*this, id);
  }
  return at(id);
}

Fragment Automaton::Empty() {
  const StateId state = AddState();
  return {state, state};
}

Fragment Automaton::Literal(std::string_view bytes) {
  Fragment fragment = Empty();
  for (const char c : bytes) {
    const StateId next = AddState();
    const auto byte = static_cast<std::uint8_t>(c);
    AddEdge(fragment.out, byte, byte, next);
    fragment.out = next;
  }
  return fragment;
}

Fragment Automaton::CodePoints(char32_t first, char32_t last) {
  const Fragment fragment{AddState(), AddState()};
  for (const Utf8Range& range : Utf8RangesOf(first, last)) {
    StateId from = fragment.in;
    for (int i = 0; i < range.length; ++i) {
      const StateId to = i + 1 == range.length ? fragment.out : AddState();
      AddEdge(from, range.first[i], range.last[i], to);
      from = to;
    }
  }
  return fragment;
}

Fragment Automaton::Call(StateId callee) {
  const Fragment fragment{AddState(), AddState()};
  AddCall(fragment.in, callee, fragment.out);
  return fragment;
}

Fragment Automaton::Sequence(Fragment a, Fragment b) {
  AddEmpty(a.out, b.in);
  return {a.in, b.out};
}

Fragment Automaton::Choice(const std::vector<Fragment>& of) {
  if (of.size() == 1) return of.front();
  const Fragment fragment{AddState(), AddState()};
  for (const Fragment& one : of) {
    AddEmpty(fragment.in, one.in);
    AddEmpty(one.out, fragment.out);
  }
  return fragment;
}

Fragment Automaton::Optional(Fragment a) { return Choice({Empty(), a}); }

Fragment Automaton::Star(Fragment a) {
  const Fragment fragment = Empty();
  AddEmpty(fragment.in, a.in);
  AddEmpty(a.out, fragment.in);
  return fragment;
}

Fragment Automaton::Plus(Fragment a) {
  const StateId out = AddState();
  AddEmpty(a.out, a.in);
  AddEmpty(a.out, out);
  return {a.in, out};
}

Fragment Automaton::Repeat(StateId callee, int n_min, int n_max) {
  const StateId in = AddState();
  const StateId out = AddState();
  StateId endless = -1;
  if (n_max < 0 || n_max > n_min) {
    endless = AddState();
    AddCall(endless, callee, endless);
    AddEmpty(endless, out);
  }
  StateId from = in;
  for (int i = 0; i < n_min && !full(); ++i) {
    const StateId to = AddState();
    AddCall(from, callee, to);
    from = to;
  }
  if (n_max < 0) {
    AddEmpty(from, endless);
    return {in, out};
  }
  for (int i = n_min; i < n_max && !full(); ++i) {
    AddEmpty(from, out);
    at(from).twin = endless;
    at(from).twin_bytes = n_max - i;
    const StateId to = AddState();
    AddCall(from, callee, to);
    from = to;
  }
  AddEmpty(from, out);
  return {in, out};
}

StateId Automaton::Close(Fragment fragment) {
  at(fragment.out).final = true;
  return fragment.in;
}

}  // namespace hearth::grammar
