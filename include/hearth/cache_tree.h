// The stored prompts of a prompt cache directory as one tree, and every block:
// what prompts have in common, and where they part.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "hearth/cache_report.h"

namespace hearth {

// Blocks in a row, behind one another, that the same prompts have.
struct PromptTreeNode {
  int parent = -1;                // in PromptTree::nodes, before this one
  std::uint64_t first_token = 0;  // of the prompts
  std::uint64_t n_tokens = 0;
  std::uint64_t n_blocks = 0;          // pieces of a block count each
  std::uint64_t n_blocks_present = 0;  // of them
  std::uint64_t bytes = 0;             // of their files
  // Of a model that carries states: positions among these tokens where they are
  // stored, and the bytes of their files.
  std::uint64_t n_states = 0, bytes_states = 0;
  int n_prompts = 0;             // that go this way
  std::int64_t last_use_ns = 0;  // the newest of these prompts'
  int prompt = -1;  // in PromptTree::prompts: the one that ends here; -1: none
};

struct PromptTreeBlock {
  std::string id;
  int node = -1;  // -1: in no prompt yet; a prefill wrote it that was stopped
  std::uint64_t n_tokens = 0;  // 0: not known, without a prompt
  std::uint64_t bytes = 0;
  bool present = false;
  int n_sharing = 0;  // stored prompts that have it
  std::int64_t last_use_ns = 0;
};

struct PromptTree {
  std::vector<PromptInfo> prompts;  // newest use first
  std::uint64_t n_locked = 0;  // not among them: of another key, or of none
  std::vector<PromptTreeNode> nodes;    // parents first
  std::vector<PromptTreeBlock> blocks;  // by node, then the loose ones
};

}  // namespace hearth
