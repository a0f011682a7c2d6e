# generated/output_families.h: the descriptions of src/output/families as text
# in the program, in the order of their names.
file(GLOB families CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/src/output/families/*.txt)
list(SORT families)
set(HEARTH_FAMILY_TEXTS "")
foreach(family IN LISTS families)
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${family})
  file(READ ${family} text)
  string(APPEND HEARTH_FAMILY_TEXTS "    R\"hearth(${text})hearth\",\n")
endforeach()
file(GENERATE OUTPUT ${CMAKE_BINARY_DIR}/generated/output_families.h CONTENT
"#pragma once
#include <string_view>
namespace hearth::output {
inline constexpr std::string_view kFamilyTexts[] = {
${HEARTH_FAMILY_TEXTS}};
}  // namespace hearth::output
")
target_include_directories(hearth_output PRIVATE ${CMAKE_BINARY_DIR}/generated)
