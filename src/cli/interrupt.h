// Ctrl-C and SIGTERM as a flag: the run ends at the next token, saves drain,
// the footer is printed. A second signal ends the program at once.
#pragma once

namespace hearth::cli {

void CatchInterrupts();
bool Interrupted();

// For a conversation: ctrl-C raises the flag again and again and never ends
// the program; SIGTERM still does as above.
void CatchInterruptsRepeatedly();
void ClearInterrupt();

}  // namespace hearth::cli
