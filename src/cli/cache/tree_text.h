// `hearth cache tree`: what stored prompts have in common, drawn with lines.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "hearth/cache_tree.h"

namespace hearth::cli {

// A line for each run of blocks that the same prompts have; what goes on behind
// it stands below, further in only where prompts part. Names are escaped.
std::string ToText(const PromptTree& tree);

nlohmann::ordered_json ToJson(const PromptTree& tree);

}  // namespace hearth::cli
