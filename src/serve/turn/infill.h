// Prompts for models that fill in what stands between two texts.
#pragma once

#include <cstdint>
#include <vector>

#include "hearth/tokenizer.h"
#include "serve/wire/request.h"

namespace hearth::serve {

// The prompt before and the suffix behind, with the marks of the model's
// vocabulary around them; files that are context come first where it has marks
// for them. kUnsupported when it has none.
Result<std::vector<std::int32_t>> InfillPrompt(const TextCodec& codec,
                                               const WireRequest& request);

}  // namespace hearth::serve
