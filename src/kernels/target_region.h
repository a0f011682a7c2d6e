// Opens and closes a region whose functions may use more than the baseline
// instruction set.
//
// Regions and not per-file compiler flags: a flag also reaches inline functions
// of shared headers, and the linker may then keep that copy for the whole
// program, which crashes on an older CPU. Every header is included before the
// region opens.
#pragma once

#define HEARTH_PRAGMA(text) _Pragma(#text)

#if defined(__clang__)
#define HEARTH_BEGIN_TARGET(features)                                   \
  HEARTH_PRAGMA(clang attribute push(__attribute__((target(features))), \
                                     apply_to = function))
#define HEARTH_END_TARGET HEARTH_PRAGMA(clang attribute pop)
#define HEARTH_UNROLL_LOOP HEARTH_PRAGMA(clang loop unroll(full))
#else
#define HEARTH_BEGIN_TARGET(features) \
  HEARTH_PRAGMA(GCC push_options) HEARTH_PRAGMA(GCC target(features))
#define HEARTH_END_TARGET HEARTH_PRAGMA(GCC pop_options)
#define HEARTH_UNROLL_LOOP HEARTH_PRAGMA(GCC unroll 16)
#endif

// Vector wrappers must vanish even in debug builds, where a call would cost
// more than the work. Not under sanitizers: their checks, inlined and unrolled
// over every lane, take a compiler minutes.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HEARTH_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define HEARTH_SANITIZED
#endif
#endif
#if defined(HEARTH_SANITIZED)
#define HEARTH_INLINE inline
#define HEARTH_UNROLL
#else
#define HEARTH_INLINE [[gnu::always_inline]] inline
#define HEARTH_UNROLL HEARTH_UNROLL_LOOP
#endif

// An inner loop that a profile should show under its own name.
#define HEARTH_NOINLINE [[gnu::noinline]]
