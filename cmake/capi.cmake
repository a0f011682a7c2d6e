# libhearth: the C interface (include/hearth/hearth.h) as a shared library that
# exports nothing else (src/capi/exports.map), and the examples that use it.
add_library(hearth_shared SHARED $<TARGET_OBJECTS:hearth_capi>)
set_target_properties(hearth_shared PROPERTIES
  OUTPUT_NAME hearth LINKER_LANGUAGE CXX
  VERSION ${PROJECT_VERSION} SOVERSION 1)  # HEARTH_1 of exports.map
target_link_libraries(hearth_shared PRIVATE hearth_engine hearth_flags)
target_include_directories(hearth_shared INTERFACE
  $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}/include>)
if(NOT APPLE)
  set(exports ${CMAKE_SOURCE_DIR}/src/capi/exports.map)
  target_link_options(hearth_shared PRIVATE -Wl,--version-script=${exports})
  set_target_properties(hearth_shared PROPERTIES LINK_DEPENDS ${exports})
endif()

if(HEARTH_TESTS)
  add_executable(example_c ${CMAKE_SOURCE_DIR}/examples/c/complete.c)
  set_target_properties(example_c PROPERTIES C_STANDARD 99 C_EXTENSIONS OFF)
  target_compile_options(example_c PRIVATE -Wall -Wextra -Wpedantic)
  if(HEARTH_WERROR)
    target_compile_options(example_c PRIVATE -Werror)
  endif()
  target_link_libraries(example_c PRIVATE hearth_shared)
  if(HEARTH_SANITIZE)
    # The sanitizers' part for C++ has to be the program's.
    set_target_properties(example_c PROPERTIES LINKER_LANGUAGE CXX)
  endif()
  set(model ${CMAKE_SOURCE_DIR}/tests/data/models/stories260K.gguf)
  add_test(NAME example.c COMMAND example_c ${model} "Once upon a time")
  add_test(NAME capi.exports COMMAND ${CMAKE_COMMAND}
           -DNM=${CMAKE_NM} -DLIBRARY=$<TARGET_FILE:hearth_shared>
           -DHEADER=${CMAKE_SOURCE_DIR}/include/hearth/hearth.h
           -P ${CMAKE_SOURCE_DIR}/cmake/check_exports.cmake)
  find_package(Python3 COMPONENTS Interpreter)
  # A sanitizer's library would have to be the interpreter's, too.
  if(Python3_FOUND AND NOT HEARTH_SANITIZE)
    add_test(NAME example.python COMMAND ${Python3_EXECUTABLE}
             ${CMAKE_SOURCE_DIR}/examples/python/complete.py ${model}
             "Once upon a time")
    set_tests_properties(example.python PROPERTIES ENVIRONMENT
                         HEARTH_LIBRARY=$<TARGET_FILE:hearth_shared>)
  endif()
endif()
