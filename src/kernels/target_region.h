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
#define HEARTH_UNROLL HEARTH_PRAGMA(clang loop unroll(full))
#else
#define HEARTH_BEGIN_TARGET(features) \
  HEARTH_PRAGMA(GCC push_options) HEARTH_PRAGMA(GCC target(features))
#define HEARTH_END_TARGET HEARTH_PRAGMA(GCC pop_options)
#define HEARTH_UNROLL HEARTH_PRAGMA(GCC unroll 16)
#endif

// Vector wrappers must vanish even in debug builds, where a call would cost
// more than the work.
#define HEARTH_INLINE [[gnu::always_inline]] inline

// An inner loop that a profile should show under its own name.
#define HEARTH_NOINLINE [[gnu::noinline]]
