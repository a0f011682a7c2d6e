# One line declares a room: a static library from src/<room>/**/*.cc and a test
# program from the *_test.cc files beside them.
function(_hearth_sources out dir pattern)
  file(GLOB_RECURSE files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${dir}/${pattern})
  set(${out} ${files} PARENT_SCOPE)
endfunction()

file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/generated/hearth_test_paths.h CONTENT
"#pragma once
#define HEARTH_TEST_DATA \"${CMAKE_SOURCE_DIR}/tests/data\"
#define HEARTH_SHARED \"${CMAKE_SOURCE_DIR}/../shared\"
#define HEARTH_PROGRAM \"$<TARGET_FILE:hearth>\"
")

# Headers that most of a target's files read and that take seconds each are read
# once. Debug builds alone: there a change is tried many times a day.
set(hearth_slow_headers <algorithm> <chrono> <filesystem> <functional> <map>
    <memory> <mutex> <optional> <span> <sstream> <string> <thread>
    <unordered_map> <variant> <vector>)
function(_hearth_precompile target)
  set(headers ${hearth_slow_headers} ${ARGN})
  if(target MATCHES "^hearth_(formats|output|serve|convert|cross_test)")
    list(APPEND headers <nlohmann/json.hpp>)
  endif()
  if(CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_precompile_headers(${target} PRIVATE ${headers})
  endif()
endfunction()

function(_hearth_test target)
  add_executable(${target} ${ARGN})
  _hearth_precompile(${target} <gmock/gmock.h> <gtest/gtest.h>)
  target_include_directories(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src)
  # Places of this checkout, for the tests that ask: as a header and not as
  # definitions, so that a compiler cache serves several checkouts.
  target_include_directories(${target} PRIVATE ${CMAKE_BINARY_DIR}/generated)
  # The default, 5 seconds to list the tests, is short for a busy machine.
  gtest_discover_tests(${target} DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 120
                       PROPERTIES TIMEOUT 900)
endfunction()

# Sanitizers double the time that templates take to compile. So there what
# computes nothing is not optimised, and rooms that no fuzz target explores do
# not count their branches. A test drives, optimised or not.
function(_hearth_quick_to_compile target room)
  if(HEARTH_SANITIZE AND room MATCHES "^(serve|cli|convert|capi)$")
    target_compile_options(${target} PRIVATE -O0)
  endif()
  if(HEARTH_LIBFUZZER AND room MATCHES "^(tensor|kernels|model|cache|cli|capi)$")
    target_compile_options(${target} PRIVATE -fno-sanitize=fuzzer-no-link)
  endif()
endfunction()
function(_hearth_quick_test target room)
  if(room MATCHES "^(tensor|kernels|model|cache)$")
    _hearth_quick_to_compile(${target} ${room})
  elseif(CMAKE_BUILD_TYPE STREQUAL "Debug")
    target_compile_options(${target} PRIVATE -O0)
  else()
    target_compile_options(${target} PRIVATE -O1)
  endif()
endfunction()

function(hearth_room room)
  cmake_parse_arguments(arg "" "" "DEPENDS;LINKS" ${ARGN})
  _hearth_sources(sources src/${room} "*.cc")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "_test\\.cc$")
  set(target hearth_${room})
  list(TRANSFORM arg_DEPENDS PREPEND hearth_)
  if(NOT sources)
    message(FATAL_ERROR "room ${room} has no sources")
  endif()
  add_library(${target} STATIC ${sources})
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX
                        POSITION_INDEPENDENT_CODE ON EXPORT_NAME ${room})
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>
    $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/src>)
  # Also for those who link the installed library: its headers are C++20.
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_link_libraries(${target} PUBLIC ${arg_DEPENDS} ${arg_LINKS}
                        PRIVATE $<BUILD_INTERFACE:hearth_flags>)
  _hearth_quick_to_compile(${target} ${room})
  _hearth_precompile(${target})
  set_property(GLOBAL APPEND PROPERTY HEARTH_ROOMS ${target})
  if(HEARTH_TESTS AND tests)
    _hearth_test(${target}_test ${tests})
    _hearth_quick_test(${target}_test ${room})
    target_link_libraries(${target}_test PRIVATE ${target} hearth_flags
                          GTest::gtest GTest::gmock GTest::gtest_main)
  endif()
endfunction()

# The program: src/<room>/main.cc, and a library of the other files, so that
# those have tests beside them like a room's. The library is not installed.
function(hearth_program target room)
  cmake_parse_arguments(arg "" "" "DEPENDS;LINKS" ${ARGN})
  _hearth_sources(sources src/${room} "*.cc")
  set(tests ${sources})
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  list(FILTER sources EXCLUDE REGEX "(_test|/main)\\.cc$")
  list(TRANSFORM arg_DEPENDS PREPEND hearth_)
  add_library(hearth_${room} STATIC ${sources})
  target_include_directories(hearth_${room} PUBLIC ${CMAKE_SOURCE_DIR}/src
                             PRIVATE ${CMAKE_BINARY_DIR}/generated)
  target_link_libraries(hearth_${room} PUBLIC ${arg_DEPENDS} ${arg_LINKS}
                        PRIVATE hearth_flags)
  _hearth_quick_to_compile(hearth_${room} ${room})
  _hearth_precompile(hearth_${room})
  add_dependencies(hearth_${room} hearth_commit)
  target_sources(${target} PRIVATE ${CMAKE_SOURCE_DIR}/src/${room}/main.cc)
  target_link_libraries(${target} PRIVATE hearth_${room} hearth_flags)
  if(HEARTH_TESTS AND tests)
    _hearth_test(hearth_${room}_test ${tests})
    _hearth_quick_test(hearth_${room}_test ${room})
    target_link_libraries(hearth_${room}_test PRIVATE hearth_${room} hearth_flags
                          GTest::gtest GTest::gmock GTest::gtest_main)
  endif()
endfunction()

# generated/hearth_commit.h: looked at in each build, written when it changed.
add_custom_target(hearth_commit
  COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR}
          -DOUT=${CMAKE_BINARY_DIR}/generated/hearth_commit.h
          -P ${CMAKE_SOURCE_DIR}/cmake/commit.cmake
  BYPRODUCTS ${CMAKE_BINARY_DIR}/generated/hearth_commit.h)

# tests/*_test.cc: one program, linked with everything, may run the program.
# The thread sanitizer's has the tests of threads alone, and so needs neither the
# server nor the program to be built once more.
function(hearth_cross_room_tests)
  _hearth_sources(tests tests "*_test.cc")
  set(rooms hearth_convert hearth_serve)
  if(HEARTH_SANITIZE STREQUAL "thread")
    list(FILTER tests INCLUDE REGEX "/(batch_step|conversation|engine_sharing|equivalence|prompt_cache|prompt_cache_interrupted|prompt_cache_miss|shared_prefix)_test\\.cc$")
    set(rooms hearth_convert)
  endif()
  if(tests)
    _hearth_test(hearth_cross_test ${tests})
    _hearth_quick_test(hearth_cross_test cross)
    target_link_libraries(hearth_cross_test PRIVATE ${rooms} hearth_flags
                          GTest::gtest GTest::gmock GTest::gtest_main)
    if(NOT HEARTH_SANITIZE STREQUAL "thread")
      add_dependencies(hearth_cross_test hearth)
    endif()
  endif()
endfunction()

# fuzz/x_fuzz.cc with seeds in fuzz/corpus/x/. Under the asan preset it is a
# libFuzzer program that ctest runs for HEARTH_FUZZ_SECONDS; elsewhere a plain
# program that replays the seeds, so that no preset loses them.
function(hearth_fuzz_targets)
  _hearth_sources(targets fuzz "*_fuzz.cc")
  add_custom_target(fuzzers)
  foreach(source IN LISTS targets)
    get_filename_component(name ${source} NAME_WE)
    string(REGEX REPLACE "_fuzz$" "" short ${name})
    set(corpus ${CMAKE_SOURCE_DIR}/fuzz/corpus/${short})
    add_executable(${name} ${source})
    add_dependencies(fuzzers ${name})
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${name} PRIVATE hearth_convert hearth_serve hearth_flags)
    if(HEARTH_LIBFUZZER)
      target_link_options(${name} PRIVATE -fsanitize=fuzzer)
      set(work ${CMAKE_BINARY_DIR}/fuzz-work/${short})
      file(MAKE_DIRECTORY ${work})
      add_test(NAME fuzz.${short} COMMAND ${name} -max_total_time=${HEARTH_FUZZ_SECONDS}
               -timeout=60 -rss_limit_mb=2048 -print_final_stats=1
               -artifact_prefix=${work}/ ${work} ${corpus})
    else()
      target_sources(${name} PRIVATE ${CMAKE_SOURCE_DIR}/fuzz/support/replay_main.cc)
      add_test(NAME fuzz_replay.${short} COMMAND ${name} ${corpus})
    endif()
  endforeach()
endfunction()

# bench/x_bench.cc: one Google Benchmark program each; bench/limits.cc: what the
# machine can do. `benches` builds them all.
function(hearth_benches)
  find_package(benchmark REQUIRED)
  _hearth_sources(benches bench "*_bench.cc")
  list(APPEND benches ${CMAKE_SOURCE_DIR}/bench/kv_quality.cc
       ${CMAKE_SOURCE_DIR}/bench/eviction_sim.cc)
  foreach(source IN LISTS benches)
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_include_directories(${name} PRIVATE ${CMAKE_SOURCE_DIR}/src)
    target_link_libraries(${name} PRIVATE hearth_convert hearth_serve
                          hearth_flags benchmark::benchmark)
  endforeach()
  add_executable(limits ${CMAKE_SOURCE_DIR}/bench/limits.cc)
  target_include_directories(limits PRIVATE ${CMAKE_SOURCE_DIR}/src)
  target_link_libraries(limits PRIVATE hearth_base hearth_flags)
  list(TRANSFORM benches REPLACE ".*/(.*)\\.cc" "\\1")
  add_custom_target(benches DEPENDS ${benches} limits)
endfunction()
