#include "output/mask/text_until.h"

#include <array>
#include <cstdint>

#include "output/description/program.h"

namespace hearth::output {
namespace {

using grammar::Automaton;
using grammar::StateId;

constexpr std::uint8_t kTextByteMax = 0xF7;  // the last that begins a character

struct Node {
  std::array<int, 256> next;
  int fail = 0;
  StateId target = -1;  // a pattern ends here
  bool in_code = false;
};

Node EmptyNode() {
  Node node;
  node.next.fill(-1);
  return node;
}

std::vector<Node> TrieOf(
    const std::vector<std::pair<std::string, StateId>>& patterns) {
  std::vector<Node> nodes{EmptyNode()};
  for (const auto& [pattern, target] : patterns) {
    int at = 0;
    for (const char c : pattern) {
      const auto byte = static_cast<std::uint8_t>(c);
      int next = nodes[static_cast<std::size_t>(at)].next[byte];
      if (next < 0) {
        next = static_cast<int>(nodes.size());
        nodes.push_back(EmptyNode());
        nodes.back().in_code = c == kTokenByte;
        nodes[static_cast<std::size_t>(at)].next[byte] = next;
      }
      at = next;
    }
    nodes[static_cast<std::size_t>(at)].target = target;
  }
  return nodes;
}

// Fills in where a byte leads that goes on with no pattern from here: where it
// leads from the longest end that is a beginning.
void Link(std::vector<Node>& nodes) {
  std::vector<int> order{0};
  for (std::size_t i = 0; i < order.size(); ++i) {
    const int at = order[i];
    for (int byte = 0; byte < 256; ++byte) {
      const auto b = static_cast<std::size_t>(byte);
      Node& node = nodes[static_cast<std::size_t>(at)];
      const int fallback =
          at == 0 ? 0 : nodes[static_cast<std::size_t>(node.fail)].next[b];
      if (node.next[b] < 0) {
        const bool text = byte <= kTextByteMax;
        node.next[b] = text || fallback != 0 ? fallback : -1;
        continue;
      }
      nodes[static_cast<std::size_t>(node.next[b])].fail = at == 0 ? 0
                                                           : fallback < 0
                                                               ? 0
                                                               : fallback;
      order.push_back(node.next[b]);
    }
  }
}

}  // namespace

void AddTextUntil(Automaton& automaton, StateId start,
                  const std::vector<std::pair<std::string, StateId>>& patterns,
                  bool ends) {
  std::vector<Node> nodes = TrieOf(patterns);
  Link(nodes);
  std::vector<StateId> states{start};
  for (std::size_t i = 1; i < nodes.size(); ++i) {
    states.push_back(nodes[i].target >= 0 ? nodes[i].target
                                          : automaton.AddState());
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = nodes[i];
    if (node.target >= 0) continue;
    if (ends && !node.in_code) automaton.at(states[i]).final = true;
    for (int first = 0; first < 256;) {
      const int next = node.next[static_cast<std::size_t>(first)];
      int last = first;
      while (last < 255 &&
             node.next[static_cast<std::size_t>(last) + 1] == next) {
        ++last;
      }
      // Behind a code's first byte nothing but its number may come.
      const bool own =
          next > 0 && nodes[static_cast<std::size_t>(next)].target >= 0;
      if (next >= 0 && (!node.in_code || own)) {
        automaton.AddEdge(states[i], static_cast<std::uint8_t>(first),
                          static_cast<std::uint8_t>(last),
                          states[static_cast<std::size_t>(next)]);
      }
      first = last + 1;
    }
  }
}

}  // namespace hearth::output
