// What a template makes of an assistant's message: the text that the model
// would have written.
#pragma once

#include <string>

#include "chat/template.h"
#include "hearth/result.h"

namespace hearth::output {

struct RenderedAnswer {
  // From behind the generation prompt to the end of the conversation.
  std::string text;
  std::string prompt_end;  // the generation prompt, as far as `text` follows it
};

// `messages` end with the assistant's. Errors as ChatTemplate::Render.
Result<RenderedAnswer> RenderAnswer(const ChatTemplate& chat,
                                    const OrderedJson& messages,
                                    const OrderedJson* tools,
                                    RenderOptions options);

}  // namespace hearth::output
