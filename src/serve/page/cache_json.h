// The bodies of /hearth/v1/cache and /hearth/v1/why (docs/page.md): ids and
// numbers, no text of any prompt.
#pragma once

#include <cstdint>
#include <string>

#include "hearth/cache.h"
#include "hearth/cache_tree.h"

namespace hearth::serve {

// More blocks than this are counted and left out: a page draws no more.
inline constexpr std::size_t kPageBlocksMax = 20000;

// The stored prompts as a tree, and every block; one column for each property
// of the blocks. `now_ms`: since 1970.
std::string CacheTreeJson(const PromptTree& tree, std::int64_t now_ms);

// How much of a prompt the cache has, and why not more. The texts around the
// place where it parts from a stored prompt are left out: they are another's.
std::string CacheWhyJson(const CacheMiss& miss);

}  // namespace hearth::serve
