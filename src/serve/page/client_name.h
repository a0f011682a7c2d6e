// Who asks, in a word that people know.
#pragma once

#include <string>
#include <string_view>

namespace hearth::serve {

// The program's name from a User-Agent: "Claude Code", "Codex", "curl"; the
// first product's own name for others, at most 32 printable ASCII characters;
// "unknown" when there is none.
std::string ClientName(std::string_view user_agent);

}  // namespace hearth::serve
