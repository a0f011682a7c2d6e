#include "cli/terminal/interrupt.h"

#include <atomic>
#include <csignal>

namespace hearth::cli {
namespace {

std::atomic<bool> interrupted{false};
std::atomic<bool> terminated{false};

void OnSignal(int number) {
  interrupted.store(true);
  if (number != SIGINT) terminated.store(true);
}

}  // namespace

void CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  // Reset after the first: the second signal has its default effect.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
  ::sigaction(SIGHUP, &action, nullptr);  // the terminal is gone
  // A limit on the length of files is an error of the write, not the end.
  action.sa_handler = SIG_IGN;
  ::sigaction(SIGXFSZ, &action, nullptr);
}

void CatchInterruptsRepeatedly() {
  CatchInterrupts();
  // No SA_RESTART: a read of the next line returns, so that the loop sees it.
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  ::sigaction(SIGINT, &action, nullptr);
}

void ClearInterrupt() { interrupted.store(terminated.load()); }

bool Terminated() { return terminated.load(); }

bool Interrupted() { return interrupted.load(); }

}  // namespace hearth::cli
