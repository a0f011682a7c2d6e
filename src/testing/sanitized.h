// Whether this build has a sanitizer: it keeps freed memory for a while, takes
// threads and address space of its own, and leaves no room for tight limits.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEARTH_TEST_SANITIZED true
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEARTH_TEST_SANITIZED true
#endif
#endif
#if !defined(HEARTH_TEST_SANITIZED)
#define HEARTH_TEST_SANITIZED false
#endif

namespace hearth {

inline constexpr bool kSanitized = HEARTH_TEST_SANITIZED;

}  // namespace hearth
