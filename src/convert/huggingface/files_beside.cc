#include "convert/huggingface/files_beside.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "base/files/output.h"

namespace hearth {
namespace {

// Files of another directory that go with any form of its weights.
bool GoesAlong(const std::string& name) {
  for (const char* known :
       {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
        "added_tokens.json", "vocab.json", "merges.txt", "tokenizer.model",
        "chat_template.jinja", "chat_template.json", "generation_config.json",
        "README.md"}) {
    if (name == known) return true;
  }
  for (const char* legal : {"LICENSE", "LICENCE", "NOTICE", "USE_POLICY"}) {
    if (name.starts_with(legal)) return true;
  }
  return false;
}

// What is written anew, or said by what is written.
bool IsReplaced(const std::string& name) {
  return name == "config.json" || name.ends_with(".safetensors") ||
         name.ends_with(".safetensors.index.json") || name.starts_with(".");
}

}  // namespace

Result<void> CopyFilesBeside(const LoadedModel& model,
                             const std::string& directory,
                             std::vector<std::string>& notes) {
  if (model.tokenizer_dir.empty()) {
    return {Code::kNotFound,
            model.path + ": has no tokenizer.json that could be copied"};
  }
  std::vector<std::string> names;
  std::error_code failed;
  for (const auto& entry :
       std::filesystem::directory_iterator(model.tokenizer_dir, failed)) {
    names.push_back(entry.path().filename().string());
  }
  if (failed) {
    return {Code::kIo, model.tokenizer_dir + ": " + failed.message()};
  }
  std::sort(names.begin(), names.end());
  std::string left;
  for (const std::string& name : names) {
    if (IsReplaced(name)) continue;
    if (!GoesAlong(name)) {
      left += (left.empty() ? "" : ", ") + name;
      continue;
    }
    HEARTH_ASSIGN(const std::string text,
                  ReadTextFile(model.tokenizer_dir + "/" + name));
    HEARTH_TRY(WriteOutput(directory + "/" + name, {}, text));
  }
  if (!left.empty()) {
    notes.push_back(model.tokenizer_dir +
                    ": files that are not copied: " + left);
  }
  return {};
}

}  // namespace hearth
