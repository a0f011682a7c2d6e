#include "cli/interrupt.h"

#include <atomic>
#include <csignal>

namespace hearth::cli {
namespace {

std::atomic<bool> interrupted{false};

void OnSignal(int) { interrupted.store(true); }

}  // namespace

void CatchInterrupts() {
  struct sigaction action = {};
  action.sa_handler = OnSignal;
  // Reset after the first: the second signal has its default effect.
  action.sa_flags = static_cast<int>(SA_RESETHAND);
  ::sigaction(SIGINT, &action, nullptr);
  ::sigaction(SIGTERM, &action, nullptr);
}

void CatchInterruptsRepeatedly() {
  CatchInterrupts();
  struct sigaction action = {};
  // No SA_RESTART: a read of the next line returns, so that the loop sees it.
  action.sa_handler = OnSignal;
  ::sigaction(SIGINT, &action, nullptr);
}

void ClearInterrupt() { interrupted.store(false); }

bool Interrupted() { return interrupted.load(); }

}  // namespace hearth::cli
