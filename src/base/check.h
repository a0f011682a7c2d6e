// HEARTH_CHECK: stops the program when only our own mistake can have made the
// condition false. What a file, a request or a limit can cause is a Result.
#pragma once

namespace hearth {

[[noreturn]] void CheckFailed(const char* condition, const char* file,
                              int line);

#define HEARTH_CHECK(condition) \
  ((condition) ? (void)0        \
               : ::hearth::CheckFailed(#condition, __FILE__, __LINE__))

}  // namespace hearth
