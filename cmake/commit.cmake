# Writes the commit that the tree is at, for `hearth --version`:
#   cmake -DSOURCE=<repo> -DOUT=<header> -P cmake/commit.cmake
execute_process(COMMAND git -C ${SOURCE} describe --always --dirty --exclude=*
                OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE
                RESULT_VARIABLE failed ERROR_QUIET)
if(failed)
  set(commit "unknown")
endif()
set(text "#pragma once\n#define HEARTH_COMMIT \"${commit}\"\n")
if(EXISTS ${OUT})
  file(READ ${OUT} before)
endif()
if(NOT before STREQUAL text)
  file(WRITE ${OUT} "${text}")
endif()
