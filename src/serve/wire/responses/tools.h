// Tools of /v1/responses, and the choice among them.
#pragma once

#include "serve/wire/common/tools.h"

namespace hearth::serve {

// Functions and custom tools, also those of a `namespace`; what a server would
// run itself is left out and named.
Checked AddResponsesTool(const OrderedJson& tool, const std::string& path,
                         const std::string& space, ToolSet& tools,
                         Ignored& ignored);
Checked ReadResponsesChoice(const OrderedJson* choice, const ToolSet& tools,
                            Ignored& ignored, AnswerForm& form);

}  // namespace hearth::serve
