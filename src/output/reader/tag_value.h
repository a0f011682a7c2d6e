// What a model wrote between the tags of an argument, as JSON.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace hearth::output {

// The text itself, blanks around it left out, where it is JSON; Python's
// spelling (True, None, 'a'), which some templates print, as JSON; any other
// text as a string.
std::string JsonOfValue(std::string_view text);

bool IsJson(std::string_view text);
// None when the text is no literal of Python.
std::optional<std::string> JsonOfPython(std::string_view text);

}  // namespace hearth::output
