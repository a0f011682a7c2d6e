# `cmake --install`: the program, the library with its headers, and a CMake
# package (find_package(hearth) gives hearth::engine).
include(CMakePackageConfigHelpers)
install(TARGETS hearth RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
get_property(rooms GLOBAL PROPERTY HEARTH_ROOMS)
install(TARGETS ${rooms} EXPORT hearth-targets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}/hearth
        INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/hearth
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT hearth-targets NAMESPACE hearth::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hearth)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/hearth-config.cmake.in
  ${CMAKE_BINARY_DIR}/hearth-config.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hearth)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/hearth-config-version.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/hearth-config.cmake
        ${CMAKE_BINARY_DIR}/hearth-config-version.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/hearth)
