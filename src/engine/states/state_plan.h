// Where the states of a prompt are kept, of a model that carries them: a state
// is valid behind the token that left it and nowhere else, so a later prompt
// can begin only from a position that was kept. docs/decisions/0135-*.md.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "cache/kv_spec.h"
#include "text/tokenizer.h"

namespace hearth {

// Every so many tokens, wherever nothing else tells: the power of two from
// which on states take at most half as much as keys and values do, one block at
// least and 8,192 at most.
int StateGrid(const KvSpec& spec);

struct StatePlanInput {
  int n_have = 0;  // tokens that are there
  int n_total = 0;
  // Up to where somebody's blocks go: what another prompt has in common.
  int n_branch = 0;
  // Numbers of leading tokens that a message ends with; none falls.
  std::span<const int> marks = {};
  // Positions other than the last are moved back to ends of blocks, since only
  // these serve elsewhere: always so of a quantised spec.
  bool at_blocks = false;
};

// Numbers of tokens, rising and between n_have and n_total, behind which states
// are to be kept: the first mark (what conversations begin with), the last two,
// and powers of two back from the end; the grid; the branch; and in front of
// the last token, which is always computed, unless a mark stands close before
// it. Of a quantised spec at ends of blocks, but for the last.
std::vector<int> PlanStates(const KvSpec& spec, const StatePlanInput& input);

// Where a control token that opens a message stands, which is where the one
// before has ended: the kind of control token that the prompt begins with.
std::vector<int> MarksAtControlTokens(const Tokenizer& tokenizer,
                                      std::span<const std::int32_t> tokens);

}  // namespace hearth
