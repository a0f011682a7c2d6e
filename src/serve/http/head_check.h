// What a request's head may look like. Two programs that read a head
// differently are how requests are smuggled past the first of them, so whatever
// has more than one reading is refused.
#pragma once

#include <optional>
#include <string_view>

#include "serve/http/message.h"

namespace hearth::serve {

// `head`: from the request line to the empty line, both included.
// `target_max`: bytes of the path and query. Nothing: it is fine.
std::optional<HttpProblem> CheckHead(std::string_view head,
                                     std::size_t target_max);

}  // namespace hearth::serve
