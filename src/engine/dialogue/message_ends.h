// Which leading ids of a prompt hold whole messages.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.h"

namespace hearth {

// For each of `ends`, byte offsets into `text`, rising: how many of `ids` end
// there or before. Empty when the ids' bytes are not those of the text (a
// tokenizer that rewrites it): then nothing is known.
std::vector<int> IdsUpTo(const Tokenizer& tokenizer,
                         std::span<const std::int32_t> ids,
                         std::string_view text,
                         std::span<const std::size_t> ends);

}  // namespace hearth
