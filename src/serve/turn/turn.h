// One request for an answer, from its bytes to the last of the answer's.
//
// Three threads take part: a worker prepares; the scheduler's tells what comes
// and has it written; the sockets' tells that nobody reads, and asks for signs
// of life.
#pragma once

#include "serve/app/call.h"
#include "serve/app/core.h"

namespace hearth::serve {

// Returns at once; `core` outlives the answer.
void StartTurn(Core& core, Call call, Dialect dialect);

}  // namespace hearth::serve
