#include "formats/loader.h"

#include <filesystem>
#include <utility>

#include "formats/gguf/gguf_model.h"
#include "formats/huggingface/huggingface.h"
#include "formats/locate/file_kind.h"
#include "formats/locate/model_folder.h"
#include "formats/tinygpt/tinygpt.h"
#include "kernels/kernels.h"

namespace hearth {
namespace {

constexpr char kExpected[] =
    "not a model file; a model is a GGUF file, a .tinygpt file or a Hugging "
    "Face directory";

bool StartsWith(ByteSpan bytes, std::string_view magic) {
  return AsText(bytes).substr(0, magic.size()) == magic;
}

std::string FolderOf(const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  return folder.empty() ? "." : folder;
}

// `folder`: where what a header names beside the file is looked for.
Result<LoadedModel> LoadBytes(ByteSpan bytes, const std::string& path,
                              const std::string& folder) {
  if (StartsWith(bytes, "GGUF")) return LoadGguf(bytes, path);
  if (StartsWith(bytes, "TGPT")) return LoadTinygpt(bytes, path, folder);
  return {Code::kUnsupported,
          path + ": " + ForeignKind(bytes).value_or(kExpected)};
}

Result<LoadedModel> LoadFile(const std::string& path) {
  HEARTH_ASSIGN(MappedFile file, MappedFile::Open(path));
  file.AdviseHugePages();
  Result<LoadedModel> model = LoadBytes(file.bytes(), path, FolderOf(path));
  if (!model.ok()) {
    return {model.error().code,
            model.error().message + UnfinishedDownloadNote(path)};
  }
  // A split model has brought the mappings of all its parts.
  if (model->files.empty()) model->files.push_back(std::move(file));
  return model;
}

}  // namespace

Result<LoadedModel> LoadModel(const std::string& path) {
  HEARTH_TRY(CheckIsaChoice());
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return LoadFile(path);
  HEARTH_ASSIGN(const std::string found, ModelInFolder(path));
  return std::filesystem::is_directory(found, ignored) ? LoadHuggingFace(found)
                                                       : LoadFile(found);
}

Result<LoadedModel> LoadModelFromMemory(ByteSpan bytes,
                                        const std::string& label) {
  HEARTH_TRY(CheckIsaChoice());
  return LoadBytes(bytes, label, /*folder=*/"");
}

}  // namespace hearth
