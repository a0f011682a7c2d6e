# `cpack` in a build folder makes a Debian package of the program:
#   cmake --preset release -DHEARTH_STATIC_LIBRARIES=ON &&
#   cmake --build build/release --target hearth hearth_shared
#   (cd build/release && cpack)
# What is not built is not packed: `cpack` must not build the tests.
set(CMAKE_SKIP_INSTALL_ALL_DEPENDENCY ON)
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME hearth)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_PACKAGE_CONTACT "The hearth authors <noreply@hearth.invalid>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY
    "runs language models and keeps their KV cache across processes")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
# The program and the C interface; the C++ libraries are for embedders, who
# install from source.
set(CPACK_COMPONENTS_ALL program)
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
    "A prompt, or any beginning of it, that was computed once on this machine is
 found again by the next process.")
set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME hearth)
set(CPACK_DEBIAN_PROGRAM_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
include(CPack)
