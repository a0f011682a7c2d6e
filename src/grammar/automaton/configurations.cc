#include "grammar/automaton/configurations.h"

#include <algorithm>
#include <set>
#include <utility>

namespace hearth::grammar {
namespace {

constexpr NodeId kUnknown = -2;

std::uint64_t KeyOf(Configuration c) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(c.state)) << 32 |
         static_cast<std::uint32_t>(c.stack);
}

}  // namespace

std::size_t Configurations::SetHash::operator()(
    const ConfigurationSet& set) const {
  std::uint64_t hash = 0x9e3779b97f4a7c15u;
  for (const Configuration& c : set) {
    hash = (hash ^ KeyOf(c)) * 0xbf58476d1ce4e5b9u;
    hash ^= hash >> 29;
  }
  return static_cast<std::size_t>(hash);
}

StackId Configurations::Push(Configuration below) {
  const auto [it, is_new] =
      stack_of_.try_emplace(KeyOf(below), static_cast<StackId>(stacks_.size()));
  if (is_new) stacks_.push_back(below);
  return it->second;
}

StateId Configurations::Skip(StateId id) {
  // A bound, because a machine may lead in a circle without taking anything.
  for (int i = 0; i < 64; ++i) {
    const State& state = automaton_.Visit(id);
    const bool only_leads_on = !state.final && state.bytes.empty() &&
                               state.calls.empty() && state.empty.size() == 1;
    if (!only_leads_on) break;
    id = state.empty.front();
  }
  return id;
}

bool Configurations::OnlyReturns(StateId id) {
  const State& state = automaton_.Visit(Skip(id));
  return state.final && state.bytes.empty() && state.calls.empty() &&
         state.empty.empty();
}

Configuration Configurations::Reduce(Configuration c) {
  c.state = Skip(c.state);
  while (c.stack != 0 && OnlyReturns(c.state)) {
    c = Below(c.stack);
    c.state = Skip(c.state);
  }
  return c;
}

NodeId Configurations::Intern(ConfigurationSet kernel) {
  for (Configuration& c : kernel) c = Reduce(c);
  std::sort(kernel.begin(), kernel.end());
  kernel.erase(std::unique(kernel.begin(), kernel.end()), kernel.end());
  const auto it = node_of_.find(kernel);
  if (it != node_of_.end()) return it->second;
  Node node{.kernel = kernel, .active = {}, .ends = false, .next = nullptr};
  Expand(node);
  if (node.active.empty() && !node.ends) {
    node_of_.emplace(std::move(kernel), kDead);
    return kDead;
  }
  const auto id = static_cast<NodeId>(nodes_.size());
  nodes_.push_back(std::move(node));
  node_of_.emplace(std::move(kernel), id);
  return id;
}

void Configurations::Expand(Node& node) {
  std::set<Configuration> seen(node.kernel.begin(), node.kernel.end());
  std::vector<Configuration> open(node.kernel);
  const auto reach = [&](Configuration c) {
    c = Reduce(c);
    if (seen.insert(c).second) open.push_back(c);
  };
  while (!open.empty()) {
    if (seen.size() > kSetMax) {
      overflowed_ = true;
      node.active.clear();
      node.ends = false;
      return;
    }
    const Configuration c = open.back();
    open.pop_back();
    const State& state = automaton_.Visit(c.state);
    if (!state.bytes.empty()) node.active.push_back(c);
    if (state.final) {
      if (c.stack == 0) {
        node.ends = true;
      } else {
        reach(Below(c.stack));
      }
    }
    for (const StateId to : state.empty) reach({to, c.stack});
    for (const CallEdge& call : state.calls) {
      // Nothing is left to do at `back` but to return: the callee may return
      // for both, and a recursion at the end needs no stack.
      const bool last = OnlyReturns(call.back);
      reach({call.callee, last ? c.stack : Push({call.back, c.stack})});
    }
  }
  std::sort(node.active.begin(), node.active.end());
}

NodeId Configurations::Step(NodeId id, std::uint8_t byte) {
  if (at(id).next == nullptr) {
    at(id).next = std::make_unique<Transitions>();
    at(id).next->fill(kUnknown);
  }
  NodeId next = (*at(id).next)[byte];
  if (next != kUnknown) return next;
  ConfigurationSet kernel;
  for (const Configuration& c : at(id).active) {
    for (const ByteEdge& edge : automaton_.at(c.state).bytes) {
      if (edge.first <= byte && byte <= edge.last) {
        kernel.push_back({edge.to, c.stack});
      }
    }
  }
  next = kernel.empty() ? kDead : Intern(std::move(kernel));
  (*at(id).next)[byte] = next;
  return next;
}

void Configurations::Trim() {
  if (nodes_.size() < kNodesMax) return;
  nodes_.clear();
  node_of_.clear();
  ++generation_;
}

}  // namespace hearth::grammar
