// Which family a model's answers are of, from its chat template alone.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "chat/template.h"
#include "output/description/program.h"

namespace hearth::output {

struct FoundFamily {
  std::shared_ptr<const Program> program;  // never null; tokens not coded
  bool calls = false;                      // else reasoning and text only
  std::string why_not = {};                // no calls: for a message
};

// Renders a known call and reads it with each family: the one that gives it
// back is meant, none when none or several do.
FoundFamily FindFamily(const ChatTemplate& chat, const RenderOptions& options);

// Whether an answer behind this prompt begins inside its reasoning.
bool EndsInThought(const Program& program, std::string_view prompt);
// Whether it ends with a thought that is over: there is to be none, as where a
// client turned it off.
bool EndsBehindThought(const Program& program, std::string_view prompt);

}  // namespace hearth::output
