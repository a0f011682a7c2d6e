// What /api/chat and /api/generate have in common.
#pragma once

#include "serve/wire/parse.h"

namespace hearth::serve {

// model, options, format, think, stream, logprobs.
Checked ReadOllamaSettings(ObjectReader& reader, Draft& draft);

}  // namespace hearth::serve
