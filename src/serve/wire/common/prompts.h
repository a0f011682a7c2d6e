// Prompts that are no conversation: texts or token ids.
#pragma once

#include "serve/wire/json/object_reader.h"
#include "serve/wire/request.h"

namespace hearth::serve {

constexpr std::size_t kPromptsMax = 64;

// A text, a list of ids, or a list of one of these; refused when it is missing.
void ReadPrompts(ObjectReader& reader, const char* name, WireRequest& request);

}  // namespace hearth::serve
