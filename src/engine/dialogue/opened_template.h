// A chat template with what probing it told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/dialogue/message_form.h"
#include "engine/text/chat_source.h"
#include "output/probe/find_family.h"

namespace hearth {

struct OpenedTemplate {
  ChatSource source;
  TemplateTraits traits;
  output::FoundFamily family;  // its special tokens coded
  std::string family_name;     // of calls; empty: none
  // The token that the template writes behind an answer, which a model's
  // configuration need not name as an end.
  std::optional<std::int32_t> closing_id;
};

// `with_family`: the name of the family to take instead of the one found;
// kNotFound when there is none of this name.
Result<OpenedTemplate> ProbeSource(ChatSource source,
                                   const Tokenizer& tokenizer,
                                   const std::string& with_family);

}  // namespace hearth
