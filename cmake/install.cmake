# `cmake --install`: the program, the library with its headers, and a CMake
# package (find_package(hearth) gives hearth::engine).
include(CMakePackageConfigHelpers)
install(TARGETS hearth RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
set(packaging ${CMAKE_SOURCE_DIR}/packaging)
install(FILES ${packaging}/hearth.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1
        COMPONENT program)
install(FILES ${packaging}/hearth.bash RENAME hearth COMPONENT program
        DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
install(FILES ${packaging}/_hearth COMPONENT program
        DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
install(FILES ${packaging}/hearth.fish COMPONENT program
        DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
install(FILES ${packaging}/copyright CHANGELOG.md docs/cli.md docs/chat.md
              docs/troubleshooting.md docs/operations.md docs/embedding.md
        COMPONENT program
        DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/hearth)
# The C interface, for those who have the program alone, too.
install(TARGETS hearth_shared LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
        COMPONENT program NAMELINK_COMPONENT program)
install(FILES include/hearth/hearth.h COMPONENT program
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/hearth)
file(RELATIVE_PATH pkgconfig_up
     /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)  # a prefix is chosen later
configure_file(${CMAKE_SOURCE_DIR}/cmake/hearth.pc.in hearth.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/hearth.pc COMPONENT program
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
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
