#include "grammar/automaton/left_recursion.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <unordered_map>
#include <vector>

namespace hearth::grammar {
namespace {

class Search {
 public:
  explicit Search(Automaton& automaton) : automaton_(automaton) {}

  // All callees of the machine, with whether they may take nothing.
  void FindNullable() {
    for (std::size_t i = 0; i < automaton_.size(); ++i) {
      for (const CallEdge& call :
           automaton_.at(static_cast<StateId>(i)).calls) {
        nullable_.emplace(call.callee, false);
      }
    }
    for (bool changed = true; changed;) {
      changed = false;
      for (auto& [callee, nullable] : nullable_) {
        if (nullable || !Reach(callee).ends) continue;
        nullable = true;
        changed = true;
      }
    }
  }

  // Whether `rule` is among what it calls before a byte.
  bool CallsItselfFirst(StateId rule) {
    std::set<StateId> seen;
    std::vector<StateId> open = {rule};
    while (!open.empty()) {
      const StateId callee = open.back();
      open.pop_back();
      for (const StateId next : Reach(callee).calls) {
        if (next == rule) return true;
        if (seen.insert(next).second) open.push_back(next);
      }
    }
    return false;
  }

 private:
  struct Reached {
    bool ends = false;
    std::set<StateId> calls;
  };

  // What a callee comes to without taking a byte.
  Reached Reach(StateId from) {
    Reached reached;
    std::set<StateId> seen = {from};
    std::vector<StateId> open = {from};
    const auto go = [&](StateId to) {
      if (seen.insert(to).second) open.push_back(to);
    };
    while (!open.empty()) {
      const State& state = automaton_.at(open.back());
      open.pop_back();
      if (state.final) reached.ends = true;
      for (const StateId to : state.empty) go(to);
      for (const CallEdge& call : state.calls) {
        reached.calls.insert(call.callee);
        if (nullable_[call.callee]) go(call.back);
      }
    }
    return reached;
  }

  Automaton& automaton_;
  std::unordered_map<StateId, bool> nullable_;
};

}  // namespace

int LeftRecursiveRule(Automaton& automaton, std::span<const StateId> rules) {
  Search search(automaton);
  search.FindNullable();
  for (std::size_t i = 0; i < rules.size(); ++i) {
    if (search.CallsItselfFirst(rules[i])) return static_cast<int>(i);
  }
  return -1;
}

}  // namespace hearth::grammar
