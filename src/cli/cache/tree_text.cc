#include "cli/cache/tree_text.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "cli/terminal/text.h"
#include "cli/terminal/units.h"

namespace hearth::cli {
namespace {

using Object = nlohmann::ordered_json;

std::string Count(std::uint64_t n, const std::string& one) {
  return std::to_string(n) + " " + one + (n == 1 ? "" : "s");
}

std::string EndText(const PromptInfo& prompt) {
  std::string text =
      "  " + Escaped(prompt.stem) + ", " + HumanAgo(prompt.last_use_ns);
  if (prompt.pinned) text += ", pinned";
  // Of a prompt whose last token alone is computed nothing need be said.
  const std::uint64_t n_whole =
      prompt.n_tokens - (prompt.carries_states ? 1 : 0);
  if (prompt.n_tokens_usable < n_whole) {
    text += ", usable up to token " + std::to_string(prompt.n_tokens_usable);
  }
  return text;
}

std::string NodeText(const PromptTree& tree, const PromptTreeNode& node) {
  std::string text = Count(node.n_tokens, "token");
  if (node.n_prompts > 1) {
    text += ", " + Count(static_cast<std::uint64_t>(node.n_prompts), "prompt");
  }
  text += ", " + HumanBytes(node.bytes);
  if (node.n_states > 0) {
    text += " and " + HumanBytes(node.bytes_states) + " of states at " +
            Count(node.n_states, "place");
  }
  const std::uint64_t missing = node.n_blocks - node.n_blocks_present;
  if (missing > 0) text += ", " + Count(missing, "block") + " missing";
  if (node.prompt >= 0) {
    text += EndText(tree.prompts[static_cast<std::size_t>(node.prompt)]);
  }
  return text;
}

// A node with what stands before it, and before what is below it.
struct Place {
  int node;
  std::string before, below;
};

std::vector<std::vector<int>> ChildrenOf(const PromptTree& tree) {
  std::vector<std::vector<int>> children(tree.nodes.size());
  for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
    const int parent = tree.nodes[i].parent;
    if (parent >= 0) {
      children[static_cast<std::size_t>(parent)].push_back(static_cast<int>(i));
    }
  }
  const auto newer = [&](int a, int b) {
    return tree.nodes[static_cast<std::size_t>(a)].last_use_ns >
           tree.nodes[static_cast<std::size_t>(b)].last_use_ns;
  };
  for (auto& list : children) {
    std::stable_sort(list.begin(), list.end(), newer);
  }
  return children;
}

}  // namespace

std::string ToText(const PromptTree& tree) {
  const auto children = ChildrenOf(tree);
  // Depth first without recursion: a conversation may have thousands of turns.
  std::vector<Place> places;
  for (std::size_t i = tree.nodes.size(); i-- > 0;) {
    if (tree.nodes[i].parent < 0)
      places.push_back({static_cast<int>(i), "", ""});
  }
  std::string text = tree.prompts.empty() ? "no stored prompts\n" : "";
  while (!places.empty()) {
    const Place place = std::move(places.back());
    places.pop_back();
    const auto index = static_cast<std::size_t>(place.node);
    text += place.before + NodeText(tree, tree.nodes[index]) + "\n";
    const std::vector<int>& below = children[index];
    if (below.size() == 1) {
      places.push_back({below[0], place.below + "+ ", place.below});
      continue;
    }
    for (std::size_t i = below.size(); i-- > 0;) {
      const bool last = i + 1 == below.size();
      places.push_back({below[i], place.below + (last ? "└─ " : "├─ "),
                        place.below + (last ? "   " : "│  ")});
    }
  }
  const auto loose = std::count_if(tree.blocks.begin(), tree.blocks.end(),
                                   [](const auto& b) { return b.node < 0; });
  if (loose > 0) {
    text += Count(static_cast<std::uint64_t>(loose), "block") +
            " of no prompt yet: prefills that were stopped\n";
  }
  if (tree.n_locked > 0) {
    text += Count(tree.n_locked, "prompt") +
            " of another key, or of none, not shown; --cache-key-file names "
            "the key\n";
  }
  return text;
}

Object ToJson(const PromptTree& tree) {
  const auto seconds = [](std::int64_t ns) {
    return static_cast<double>(ns) * 1e-9;
  };
  Object nodes = Object::array();
  for (const PromptTreeNode& n : tree.nodes) {
    nodes.push_back(
        {{"parent", n.parent < 0 ? Object() : Object(n.parent)},
         {"first_token", n.first_token},
         {"tokens", n.n_tokens},
         {"blocks", n.n_blocks},
         {"blocks_present", n.n_blocks_present},
         {"bytes", n.bytes},
         {"states", n.n_states},
         {"bytes_states", n.bytes_states},
         {"prompts", n.n_prompts},
         {"last_use_unix_s", seconds(n.last_use_ns)},
         {"prompt",
          n.prompt < 0
              ? Object()
              : Object(
                    tree.prompts[static_cast<std::size_t>(n.prompt)].stem)}});
  }
  const auto loose = std::count_if(tree.blocks.begin(), tree.blocks.end(),
                                   [](const auto& b) { return b.node < 0; });
  return {{"nodes", std::move(nodes)},
          {"blocks_loose", loose},
          {"locked", tree.n_locked}};
}

}  // namespace hearth::cli
