# Compiler flags shared by every target. No -march here: one binary runs on any
# x86-64 and picks its kernels at run time (src/kernels).
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g")
if(HEARTH_SANITIZE)
  # Lines for the reports; variables would cost a fifth of the build time.
  set(CMAKE_CXX_FLAGS_DEBUG "-O1 -g1")
endif()
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1")

# Debug information makes links slow; mold takes a tenth of the time.
find_program(HEARTH_MOLD mold)
if(HEARTH_MOLD AND CMAKE_BUILD_TYPE STREQUAL "Debug")
  add_link_options(-fuse-ld=mold)
endif()

add_library(hearth_flags INTERFACE)
# Contraction changes results between compilers and CPUs; the kernels write
# every fused multiply-add explicitly instead.
target_compile_options(hearth_flags INTERFACE -ffp-contract=off -Wall -Wextra
                       -Wconversion -Wshadow -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Vector types never cross a non-inlined call here, so the ABI note is noise.
  target_compile_options(hearth_flags INTERFACE -Wno-psabi)
  # g++ 12 reports overlaps of 2^63 bytes inside std::string (GCC bug 105651).
  target_compile_options(hearth_flags INTERFACE -Wno-restrict)
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  target_compile_options(hearth_flags INTERFACE -Wthread-safety)  # base/mutex.h
endif()
if(HEARTH_WERROR)
  target_compile_options(hearth_flags INTERFACE -Werror)
endif()

set(ubsan "undefined,float-divide-by-zero,float-cast-overflow")
set(HEARTH_LIBFUZZER OFF)
if(HEARTH_SANITIZE STREQUAL "address")
  set(sanitize -fsanitize=address,${ubsan})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # One build serves the tests and the fuzz targets.
    set(HEARTH_LIBFUZZER ON)
    add_compile_options(-fsanitize=fuzzer-no-link)
  endif()
elseif(HEARTH_SANITIZE STREQUAL "thread")
  set(sanitize -fsanitize=thread)
elseif(HEARTH_SANITIZE)
  message(FATAL_ERROR "HEARTH_SANITIZE: unknown value ${HEARTH_SANITIZE}")
endif()
if(sanitize)
  add_compile_options(${sanitize} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(${sanitize})
endif()
