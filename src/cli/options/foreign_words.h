// Options of other programs that people bring along, and what to say instead.
#pragma once

#include <string>
#include <vector>

namespace hearth::cli {

// Why the first of `words` (the command line without the program's name) that
// is such an option is refused, and what does its work here; empty when there
// is none. The value of an option is not looked at.
std::string ForeignWord(const std::vector<std::string>& words);

}  // namespace hearth::cli
