// Every manifest of a store, read, beside the catalog of its files: what the
// administrative calls look things up in.
#pragma once

#include <memory>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "store/admin/store_admin.h"
#include "store/directory/catalog.h"
#include "store/format/prompt_file.h"

namespace hearth {

struct SurveyedPrompt {
  std::string stem;
  const CatalogFile* file = nullptr;
  PromptHeader header;
};

struct PromptSurvey {
  Catalog catalog;
  std::vector<SurveyedPrompt> prompts;
  std::unordered_map<Digest, const CatalogFile*> blocks;
  std::unordered_map<Digest, int> n_sharing;  // prompts that have the block
  // States, by the id of the prefix that they are behind: apart from the
  // blocks, since one that ends a block has the block's id.
  std::unordered_map<Digest, const CatalogFile*> states;
  std::unordered_map<Digest, int> n_sharing_state;
  std::unordered_set<std::string> pins;
  // Stems of manifests that are encrypted under a key that was not given.
  std::unordered_set<std::string> locked;
  std::unordered_map<std::string, const CatalogFile*> notes;  // by stem
};

// Pointers inside point into the survey's own catalog: it does not move.
Result<std::unique_ptr<PromptSurvey>> Survey(const Directory& root);

PromptInfo InfoOf(const PromptSurvey& survey, const SurveyedPrompt& prompt,
                  const Directory& root);

}  // namespace hearth
