// Text of others on a terminal.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

// The text with its control characters written as \xNN, so that what comes from
// a server or a file name cannot move the cursor or change a terminal's state.
std::string Printable(std::string_view text);

}  // namespace hearth
