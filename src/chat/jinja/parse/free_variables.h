// Which variables a template expects from outside.
#pragma once

#include <string>
#include <vector>

#include "chat/jinja/parse/ast.h"

namespace hearth::jinja {

// The names that `program` may read before it has set them, sorted, without
// the engine's own functions. A name that only one branch of an `if` sets
// counts as not set behind it.
std::vector<std::string> FreeVariables(const Program& program);

}  // namespace hearth::jinja
