// Where the messages of a rendered conversation end, in ids: what a model that
// carries states is told where its control tokens do not say it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hearth/result.h"
#include "text/tokenizer.h"

namespace hearth {

// `n` leading messages as the template writes them, without what opens an
// answer.
using RenderMessages = std::function<Result<std::string>(std::size_t n)>;

// Numbers of leading ids, rising: behind the first message, all of them, and
// powers of two back from there, which is where states are kept
// (engine/states/state_plan.h). Left out is what the template writes otherwise
// when it stands alone. Empty where each message but the first begins with the
// same control token, since the engine sees that by itself
// (MarksAtControlTokens). `ids`: of `text`, which has `n_messages`. Each mark
// costs a rendering and its tokens. Errors are the tokenizer's.
Result<std::vector<int>> MessageMarks(const Tokenizer& tokenizer,
                                      std::string_view text,
                                      std::span<const std::int32_t> ids,
                                      std::size_t n_messages,
                                      const RenderMessages& render);

// The same places in `ids`, which are `rendered` but for what stands between
// their common beginning and end: an answer as it was sampled. Marks in there
// are left out.
std::vector<int> MarksAmong(std::span<const std::int32_t> ids,
                            std::span<const std::int32_t> rendered,
                            const std::vector<int>& marks);

}  // namespace hearth
