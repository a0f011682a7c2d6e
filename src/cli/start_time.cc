#include <chrono>

#include "cli/options/command.h"

namespace hearth::cli {
namespace {

// Initialised before main: as near to the start of the process as a program
// can get by itself.
const auto kProcessStart = std::chrono::steady_clock::now();

}  // namespace

double SinceStartMs() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now() - kProcessStart)
      .count();
}

}  // namespace hearth::cli
