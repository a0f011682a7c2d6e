// Families that people run and hearth does not compute, for messages that say
// which one it is.
#pragma once

#include <string>
#include <string_view>

namespace hearth {

// Why a model of this Hugging Face class or GGUF architecture is not read;
// empty for one that nothing more is known of.
std::string UnreadFamilyNote(std::string_view class_or_architecture);

}  // namespace hearth
