// Where a text stands in a grammar: sets of configurations, made once and then
// stepped by table.
//
// A configuration is a state and a stack of states to come back to. A node is a
// set of them, interned: the same set has the same number, and a byte that was
// tried once leads on by a lookup. So a text walks a deterministic automaton
// that is made as far as texts have gone.
//
// The bottom of a stack is either the end of the text or, for a node made by
// Local, the end of the call that a state belongs to, wherever it was called
// from: what is known of a local node holds in every context.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "grammar/automaton/automaton.h"

namespace hearth::grammar {

using StackId = std::int32_t;  // 0: the bottom
using NodeId = std::int32_t;
inline constexpr NodeId kDead = -1;

struct Configuration {
  StateId state;
  StackId stack;
  friend bool operator==(const Configuration&, const Configuration&) = default;
  friend auto operator<=>(const Configuration&, const Configuration&) = default;
};
using ConfigurationSet = std::vector<Configuration>;  // sorted

class Configurations {
 public:
  // Nodes beyond this are forgotten, all at once; see generation().
  static constexpr std::size_t kNodesMax = 1 << 14;
  // A set that grows beyond this means that a text can be read in absurdly many
  // ways: what would need it is dead, and overflowed() says so.
  static constexpr std::size_t kSetMax = 1 << 12;

  explicit Configurations(Automaton& automaton) : automaton_(automaton) {}

  // The node of a set; of one state at the bottom.
  NodeId Intern(ConfigurationSet kernel);
  NodeId Local(StateId state) { return Intern({{state, 0}}); }
  // kDead when no configuration takes the byte and none ends.
  NodeId Step(NodeId node, std::uint8_t byte);
  // Whether the bottom can be reached without another byte.
  bool Ends(NodeId node) const { return at(node).ends; }
  // Whether some byte leads on.
  bool GoesOn(NodeId node) const { return !at(node).active.empty(); }
  // What the node was interned from, calls not yet entered.
  const ConfigurationSet& Kernel(NodeId node) const { return at(node).kernel; }
  // The configuration below: what a call comes back to. REQUIRES: stack > 0.
  Configuration Below(StackId stack) const {
    return stacks_[static_cast<std::size_t>(stack)];
  }

  // Grows when all nodes were forgotten: numbers from before mean nothing.
  std::uint64_t generation() const { return generation_; }
  bool overflowed() const { return overflowed_; }
  // Forgets all nodes if there are many. Call it when no number is held.
  void Trim();

 private:
  using Transitions = std::array<NodeId, 256>;
  struct Node {
    ConfigurationSet kernel;
    ConfigurationSet active;  // after calls and returns: those with byte edges
    bool ends = false;
    std::unique_ptr<Transitions> next;
  };
  struct SetHash {
    std::size_t operator()(const ConfigurationSet& set) const;
  };

  Node& at(NodeId id) { return nodes_[static_cast<std::size_t>(id)]; }
  const Node& at(NodeId id) const {
    return nodes_[static_cast<std::size_t>(id)];
  }
  StackId Push(Configuration below);
  // A state from which only the way back is left is left at once, so that equal
  // positions have equal sets.
  Configuration Reduce(Configuration c);
  bool OnlyReturns(StateId state);
  // Past states that only lead on to one other.
  StateId Skip(StateId state);
  void Expand(Node& node);

  Automaton& automaton_;
  std::vector<Node> nodes_;
  std::unordered_map<ConfigurationSet, NodeId, SetHash> node_of_;
  std::vector<Configuration> stacks_{{-1, -1}};
  std::unordered_map<std::uint64_t, StackId> stack_of_;
  std::uint64_t generation_ = 0;
  bool overflowed_ = false;
};

}  // namespace hearth::grammar
