// Which model a folder stands for: people name the folder that a download made.
#pragma once

#include <string>

#include "hearth/result.h"

namespace hearth {

// The folder itself when it has a config.json; the one GGUF file in it (parts
// of a split model count as one, vision projectors not at all); of a folder of
// the hub's cache (models--OWNER--NAME) the snapshot that refs/main names, or
// the only one. kInvalidArgument, with what lies there, when there are several;
// kNotFound, kUnsupported with what it is otherwise.
Result<std::string> ModelInFolder(const std::string& folder);

}  // namespace hearth
