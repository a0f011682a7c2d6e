#include "formats/locate/model_folder.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <vector>

#include "base/file.h"
#include "formats/describe.h"
#include "formats/gguf/gguf_split.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kNamesShown = 4;
constexpr std::size_t kRefBytesMax = 256;

bool Has(const fs::path& folder, const char* name) {
  std::error_code ignored;
  return fs::exists(folder / name, ignored);
}

std::vector<std::string> NamesIn(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string Listed(const std::vector<std::string>& names) {
  std::string list;
  for (std::size_t i = 0; i < std::min(names.size(), kNamesShown); ++i) {
    list += (i == 0 ? "" : ", ") + Quoted(names[i]);
  }
  return names.size() > kNamesShown ? list + ", ..." : list;
}

// One name for each model: of a split one that of its first part.
std::vector<std::string> GgufModels(const std::vector<std::string>& names) {
  std::set<std::string> models;
  for (const std::string& name : names) {
    if (!name.ends_with(".gguf") || name.find("mmproj") != std::string::npos) {
      continue;
    }
    const auto part = SplitPartOf(name);
    models.insert(part.has_value() ? part->PathOf(0) : name);
  }
  return {models.begin(), models.end()};
}

// `folder` is models--OWNER--NAME of the hub's cache.
Result<std::string> SnapshotOf(const std::string& folder) {
  const std::vector<std::string> snapshots =
      NamesIn(fs::path(folder) / "snapshots");
  const auto main =
      ReadTextFile((fs::path(folder) / "refs" / "main").string(), kRefBytesMax);
  std::string wanted = main.ok() ? *main : "";
  wanted.erase(std::find_if(wanted.begin(), wanted.end(),
                            [](char c) { return c == '\n' || c == '\r'; }),
               wanted.end());
  const bool there =
      std::find(snapshots.begin(), snapshots.end(), wanted) != snapshots.end();
  if (!there && snapshots.size() == 1) wanted = snapshots.front();
  if (!there && snapshots.size() != 1) {
    return {snapshots.empty() ? Code::kNotFound : Code::kInvalidArgument,
            folder + ": this is a folder of the hub's cache " +
                (snapshots.empty()
                     ? "without its snapshot; download the model again"
                     : "with several snapshots; give one of " +
                           Listed(snapshots) + " in its folder snapshots")};
  }
  return ModelInFolder((fs::path(folder) / "snapshots" / wanted).string());
}

// Folders that hold a model in a form that is not read.
Error NoModel(const std::string& folder,
              const std::vector<std::string>& names) {
  const auto holds = [&](std::string_view start, std::string_view end) {
    return std::any_of(names.begin(), names.end(), [&](const auto& name) {
      return name.starts_with(start) && name.ends_with(end);
    });
  };
  const auto unsupported = [&](const char* what) {
    return Error{Code::kUnsupported, folder + ": " + what};
  };
  if (holds("adapter_config.json", "")) {
    return unsupported(
        "this is a LoRA adapter (PEFT), not a model; give the model that it "
        "changes, and this directory as an adapter of it");
  }
  if (holds("model_index.json", "")) {
    return unsupported("this is a pipeline for images, not a language model");
  }
  if (holds("params.json", "") && holds("consolidated", "")) {
    return unsupported(
        "these are weights in their authors' first form (params.json, "
        "consolidated...); get the model in the Hugging Face form or as GGUF");
  }
  if (holds("models--", "")) {
    std::vector<std::string> models;
    for (const std::string& name : names) {
      if (name.starts_with("models--")) models.push_back(name);
    }
    return {Code::kInvalidArgument,
            folder + ": this is the hub's cache; give one of its models: " +
                Listed(models)};
  }
  if (holds("", ".safetensors")) {
    return {Code::kNotFound,
            folder +
                ": has weights but no config.json; download the "
                "config.json and tokenizer.json that belong to them"};
  }
  return {Code::kNotFound,
          folder +
              ": has no config.json and no GGUF file; a model directory "
              "holds config.json and model.safetensors, or one GGUF file"};
}

}  // namespace

Result<std::string> ModelInFolder(const std::string& folder) {
  if (Has(folder, "config.json")) return folder;
  const std::vector<std::string> names = NamesIn(folder);
  const std::vector<std::string> models = GgufModels(names);
  if (models.size() == 1) return (fs::path(folder) / models.front()).string();
  if (models.size() > 1) {
    return {Code::kInvalidArgument, folder +
                                        ": holds several GGUF files; give "
                                        "one of " +
                                        Listed(models)};
  }
  if (Has(folder, "snapshots") ||
      (Has(folder, "refs") && Has(folder, "blobs")) ||
      Has(folder, "refs/main")) {
    return SnapshotOf(folder);
  }
  return NoModel(folder, names);
}

}  // namespace hearth
