#include "store/admin/prompt_tree.h"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace hearth {
namespace {

// A block behind those that lead to it.
struct Vertex {
  int parent = -1;  // before this one
  Digest id;
  std::uint64_t first_token = 0, n_tokens = 0;
  int n_children = 0;
  int n_prompts = 0;
  int prompt = -1;  // that ends here
  std::uint64_t n_states = 0, bytes_states = 0;
  std::int64_t last_use_ns = 0;
};

// One block below one parent.
struct Step {
  int parent;
  Digest id;
  bool operator==(const Step&) const = default;
};
struct StepHash {
  std::size_t operator()(const Step& step) const {
    return std::hash<Digest>()(step.id) ^
           (static_cast<std::size_t>(step.parent + 1) * 0x9e3779b97f4a7c15U);
  }
};

class TreeMaker {
 public:
  TreeMaker(const PromptSurvey& survey, PromptTree& tree)
      : survey_(survey), tree_(tree) {}

  void Add(const SurveyedPrompt& prompt, int number, std::int64_t last_use) {
    int at = -1;
    for (std::size_t i = 0; i < prompt.header.entries.size(); ++i) {
      at = Below(at, prompt.header, i);
      Vertex& vertex = vertices_[static_cast<std::size_t>(at)];
      ++vertex.n_prompts;
      vertex.last_use_ns = std::max(vertex.last_use_ns, last_use);
      AddStates(prompt.header, i, vertex);
    }
    if (at >= 0) vertices_[static_cast<std::size_t>(at)].prompt = number;
  }

  // Those behind tokens of entry `i`, once however many prompts name them.
  void AddStates(const PromptHeader& header, std::size_t i, Vertex& vertex) {
    for (const PromptEntry& state : header.states) {
      if (state.end <= header.FirstOf(i) || state.end > header.entries[i].end) {
        continue;
      }
      const auto file = survey_.states.find(state.id);
      if (file == survey_.states.end()) continue;
      if (!counted_states_.insert(state.id).second) continue;
      ++vertex.n_states;
      vertex.bytes_states += file->second->bytes;
    }
  }

  // A node ends where prompts part, and where one of them ends.
  void Finish() {
    std::vector<int> node_of(vertices_.size());
    for (std::size_t i = 0; i < vertices_.size(); ++i) {
      const Vertex& vertex = vertices_[i];
      const int above = vertex.parent < 0
                            ? -1
                            : node_of[static_cast<std::size_t>(vertex.parent)];
      node_of[i] = GoesOn(vertex) ? above : NewNode(vertex, above);
      Extend(node_of[i], vertex);
    }
    AddBlocks(node_of);
  }

 private:
  int Below(int parent, const PromptHeader& header, std::size_t i) {
    const Digest& id = header.entries[i].id;
    const auto [found, is_new] =
        by_step_.try_emplace({parent, id}, static_cast<int>(vertices_.size()));
    if (is_new) {
      Vertex vertex;
      vertex.parent = parent;
      vertex.id = id;
      vertex.first_token = header.FirstOf(i);
      vertex.n_tokens = header.entries[i].end - vertex.first_token;
      vertices_.push_back(vertex);
      if (parent >= 0) {
        ++vertices_[static_cast<std::size_t>(parent)].n_children;
      }
    }
    return found->second;
  }

  bool GoesOn(const Vertex& vertex) const {
    if (vertex.parent < 0) return false;
    const Vertex& parent = vertices_[static_cast<std::size_t>(vertex.parent)];
    return parent.n_children == 1 && parent.prompt < 0;
  }

  int NewNode(const Vertex& vertex, int above) {
    PromptTreeNode node;
    node.parent = above;
    node.first_token = vertex.first_token;
    node.n_prompts = vertex.n_prompts;
    node.last_use_ns = vertex.last_use_ns;
    tree_.nodes.push_back(node);
    return static_cast<int>(tree_.nodes.size()) - 1;
  }

  void Extend(int index, const Vertex& vertex) {
    PromptTreeNode& node = tree_.nodes[static_cast<std::size_t>(index)];
    node.n_tokens += vertex.n_tokens;
    ++node.n_blocks;
    node.n_states += vertex.n_states;
    node.bytes_states += vertex.bytes_states;
    const auto file = survey_.blocks.find(vertex.id);
    if (file != survey_.blocks.end()) {
      ++node.n_blocks_present;
      node.bytes += file->second->bytes;
    }
    node.prompt = vertex.prompt;
  }

  void AddBlocks(const std::vector<int>& node_of) {
    std::vector<std::size_t> order(vertices_.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(
        order.begin(), order.end(),
        [&](std::size_t a, std::size_t b) { return node_of[a] < node_of[b]; });
    for (const std::size_t i : order) {
      const Vertex& vertex = vertices_[i];
      PromptTreeBlock block;
      block.id = ToHex(vertex.id);
      block.node = node_of[i];
      block.n_tokens = vertex.n_tokens;
      block.n_sharing = vertex.n_prompts;
      block.last_use_ns = vertex.last_use_ns;
      const auto file = survey_.blocks.find(vertex.id);
      if (file != survey_.blocks.end()) {
        block.present = true;
        block.bytes = file->second->bytes;
        block.last_use_ns = file->second->last_use_ns;
      }
      tree_.blocks.push_back(std::move(block));
    }
    for (const CatalogFile& file : survey_.catalog.files) {
      if (file.kind != FileKind::kBlock ||
          survey_.n_sharing.count(file.id) > 0) {
        continue;
      }
      tree_.blocks.push_back(
          {ToHex(file.id), -1, 0, file.bytes, true, 0, file.last_use_ns});
    }
  }

  const PromptSurvey& survey_;
  PromptTree& tree_;
  std::vector<Vertex> vertices_;  // parents first
  std::unordered_map<Step, int, StepHash> by_step_;
  std::unordered_set<Digest> counted_states_;
};

}  // namespace

PromptTree MakePromptTree(const PromptSurvey& survey, const Directory& root) {
  PromptTree tree;
  tree.n_locked = survey.locked.size();
  std::vector<std::pair<PromptInfo, const SurveyedPrompt*>> prompts;
  for (const SurveyedPrompt& prompt : survey.prompts) {
    prompts.emplace_back(InfoOf(survey, prompt, root), &prompt);
  }
  std::sort(prompts.begin(), prompts.end(), [](const auto& a, const auto& b) {
    return a.first.last_use_ns != b.first.last_use_ns
               ? a.first.last_use_ns > b.first.last_use_ns
               : a.first.stem < b.first.stem;
  });
  TreeMaker maker(survey, tree);
  for (auto& [info, prompt] : prompts) {
    maker.Add(*prompt, static_cast<int>(tree.prompts.size()), info.last_use_ns);
    tree.prompts.push_back(std::move(info));
  }
  maker.Finish();
  return tree;
}

}  // namespace hearth
