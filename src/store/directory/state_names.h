// Which states of a chain a store has, by the names of its files alone.
#pragma once

#include <cstddef>
#include <vector>

#include "base/files/directory.h"
#include "cache/block_chain.h"
#include "store/format/prompt_file.h"

namespace hearth {

// Behind the chain's first `n_max` tokens at most, rising; ids and ends alone.
// Takes time in the number of all states that are stored.
std::vector<PromptEntry> StatesOf(const Directory& root,
                                  const BlockChain& chain, std::size_t n_max);

}  // namespace hearth
