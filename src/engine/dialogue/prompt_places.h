// Where in a prompt's ids its messages and answers stand.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hearth/dialogue.h"
#include "text/tokenizer.h"

namespace hearth {

// How many of `ids`, a text's encoding, hold its beginning `part` alone: as
// many as both encodings begin with. A token over the part's end is not one of
// them. kResourceFull and kInvalidArgument as Tokenizer::Encode.
Result<int> IdsOfBeginning(const Tokenizer& tokenizer,
                           std::span<const std::int32_t> ids,
                           std::string_view part);

// What stands between `opening` and an end marker: the tokenizer's or
// `closing`, the template's. What no marker ends, as the place at the end of
// the prompt, is none.
std::vector<IdRange> FindAnswers(const Tokenizer& tokenizer,
                                 std::span<const std::int32_t> ids,
                                 std::span<const std::int32_t> opening,
                                 std::optional<std::int32_t> closing);

}  // namespace hearth
