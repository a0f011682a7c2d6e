// An AnswerReader: tokens as an engine gives them, into a Walker.
#pragma once

#include <memory>

#include "hearth/dialogue.h"
#include "output/description/program.h"
#include "output/tools.h"
#include "text/tokenizer.h"

namespace hearth::output {

// `program` was made with the tokenizer's tokens (WithTokens). A token's text
// may come later than its id (a stop text holds it back), so the reader decodes
// ids itself and goes as far as text has come; text without an id counts as
// plain text.
std::unique_ptr<AnswerReader> MakeTokenReader(
    std::shared_ptr<const Program> program,
    std::shared_ptr<const ToolSet> tools,
    std::shared_ptr<const Tokenizer> tokenizer, bool in_thought);

}  // namespace hearth::output
