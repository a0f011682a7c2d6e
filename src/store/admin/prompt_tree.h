// Stored prompts, which are lists of blocks, joined where they begin alike.
#pragma once

#include "base/files/directory.h"
#include "hearth/cache_tree.h"
#include "store/directory/prompt_survey.h"

namespace hearth {

// Takes time in the number of blocks of all prompts. A manifest may name any
// ids in any order: what it says of one never moves another prompt's blocks.
PromptTree MakePromptTree(const PromptSurvey& survey, const Directory& root);

}  // namespace hearth
