# The room of NVIDIA cards. Its host side needs nothing but the system; the
# kernels need nvcc, and a program without them says so when a card is asked for.
#   AUTO  kernels in release builds where nvcc is found (a minute of processor
#         time; other builds run the same source on the host, in tests)
#   ON    kernels in any build; it is an error when there is no nvcc
#   OFF   none
set(HEARTH_CUDA AUTO CACHE STRING "Kernels for NVIDIA cards: AUTO, ON or OFF")
set(HEARTH_CUDA_ARCHITECTURES 80 90 CACHE STRING
    "Compute capabilities that there is machine code for, times ten")
set_property(CACHE HEARTH_CUDA PROPERTY STRINGS AUTO ON OFF)

hearth_room(cuda DEPENDS tensor LINKS ${CMAKE_DL_LIBS})

if(HEARTH_CUDA STREQUAL "ON" OR
   (HEARTH_CUDA STREQUAL "AUTO" AND CMAKE_BUILD_TYPE STREQUAL "Release"))
  find_program(HEARTH_NVCC nvcc PATHS /usr/local/cuda/bin)
  if(NOT HEARTH_NVCC AND HEARTH_CUDA STREQUAL "ON")
    message(FATAL_ERROR "HEARTH_CUDA is ON and nvcc is not found")
  endif()
endif()
if(HEARTH_NVCC AND NOT HEARTH_CUDA STREQUAL "OFF")
  # Machine code for 8.0 and 9.0 runs on 8.x and 9.x; newer cards translate the
  # newest intermediate code when they load it.
  set(kernels ${CMAKE_BINARY_DIR}/generated/hearth_cuda_kernels.fatbin)
  file(GLOB kernel_sources CONFIGURE_DEPENDS
       ${CMAKE_SOURCE_DIR}/src/cuda/kernels/*)
  set(codes "")
  foreach(arch IN LISTS HEARTH_CUDA_ARCHITECTURES)
    list(APPEND codes -gencode "arch=compute_${arch},code=sm_${arch}")
  endforeach()
  list(GET HEARTH_CUDA_ARCHITECTURES -1 newest)
  list(APPEND codes -gencode
       "arch=compute_${newest},code=compute_${newest}")
  add_custom_command(OUTPUT ${kernels}
    COMMAND ${HEARTH_NVCC} -std=c++20 -O3 --fmad=false -fatbin
            -ccbin ${CMAKE_CXX_COMPILER} -I${CMAKE_SOURCE_DIR}/src
            ${codes}
            ${CMAKE_SOURCE_DIR}/src/cuda/kernels/kernels.cu -o ${kernels}
    DEPENDS ${kernel_sources} ${CMAKE_SOURCE_DIR}/src/cuda/simt.h
    COMMENT "Kernels for NVIDIA cards" VERBATIM)
  target_sources(hearth_cuda PRIVATE src/cuda/kernel_image.S)
  set_source_files_properties(src/cuda/kernel_image.S PROPERTIES
    COMPILE_DEFINITIONS "HEARTH_CUDA_KERNELS=\"${kernels}\""
    OBJECT_DEPENDS ${kernels})
  target_compile_definitions(hearth_cuda PRIVATE HEARTH_HAS_CUDA_KERNELS)
  message(STATUS "Kernels for NVIDIA cards: ${HEARTH_NVCC}")
else()
  message(STATUS "Kernels for NVIDIA cards: none (HEARTH_CUDA=${HEARTH_CUDA})")
endif()
