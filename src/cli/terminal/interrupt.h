// Ctrl-C, SIGTERM and SIGHUP as a flag: the run ends at the next token, saves
// drain, the footer is printed. A second signal ends the program at once.
#pragma once

namespace hearth::cli {

void CatchInterrupts();
bool Interrupted();

// For a conversation: ctrl-C raises the flag again and again and never ends
// the program; SIGTERM and SIGHUP still do as above, and stays raised.
void CatchInterruptsRepeatedly();
void ClearInterrupt();
bool Terminated();

// Seconds that saves may take after a signal; what is not written then is lost,
// and said to be.
inline constexpr double kDrainSecondsMax = 10;

}  // namespace hearth::cli
