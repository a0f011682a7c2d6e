// Threads for work that goes on without them when the system has none to give.
#pragma once

#include <new>
#include <system_error>
#include <thread>
#include <utility>

namespace hearth {

// Runs `work` on a thread of its own. Not joinable when the system refuses one,
// for want of memory or by its limits: then `work` has not run and never will.
template <typename Work>
std::thread TryStartThread(Work work) {
  try {
    return std::thread(std::move(work));
  } catch (const std::system_error&) {
  } catch (const std::bad_alloc&) {
  }
  return {};
}

}  // namespace hearth
