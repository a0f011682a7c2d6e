// Where the prompt cache is when the user names no place, and how large it may
// grow there.
#pragma once

#include <cstdint>
#include <string>

namespace hearth::cli {

// HEARTH_CACHE_DIR, else hearth/ in XDG_CACHE_HOME or in ~/.cache. Empty when
// none of them says where. A relative XDG_CACHE_HOME counts as unset, as its
// specification has it.
std::string DefaultCacheDirectory();

// 20 GB, or a tenth of what the disk of `directory`, which need not exist, has
// left for this user if that is less.
std::uint64_t DefaultCacheBudget(const std::string& directory);

// A budget from the free bytes alone.
std::uint64_t CacheBudgetFor(std::uint64_t free_bytes);

}  // namespace hearth::cli
