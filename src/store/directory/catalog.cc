#include "store/directory/catalog.h"

#include <utility>

#include "store/directory/layout.h"
#include "store/files/temporary_name.h"
#include "store/format/vault.h"

namespace hearth {
namespace {

FileKind KindOf(const std::string& folder, const std::string& name,
                Digest& id) {
  if (IsTemporary(name)) return FileKind::kTemporary;
  if (folder.empty()) {
    return name == kVersionName || name == kUsageName ? FileKind::kRootFile
                                                      : FileKind::kUnknown;
  }
  if (folder == kQuarantineName) return FileKind::kQuarantined;
  if (folder == kPinsName) return FileKind::kPin;
  if (folder == kModelsName) return FileKind::kMemo;
  if (folder == kPromptsName) {
    if (name.ends_with(kPromptSuffix)) return FileKind::kManifest;
    if (name.ends_with(kSidecarSuffix)) return FileKind::kSidecar;
    return FileKind::kUnknown;
  }
  const auto block_id = BlockIdOf(name);
  if (!block_id || !folder.ends_with("/" + BlockFolder(*block_id))) {
    return FileKind::kUnknown;
  }
  id = *block_id;
  return FileKind::kBlock;
}

void ScanFolder(const Directory& folder, const std::string& path,
                Catalog& catalog) {
  const auto entries = folder.List();
  if (!entries.ok()) return;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.is_directory) continue;
    CatalogFile file;
    file.kind = KindOf(path, entry.name, file.id);
    file.folder = path;
    file.name = entry.name;
    file.bytes = entry.is_file ? entry.size : 0;
    file.last_use_ns = entry.mtime_ns;
    file.stale = file.kind == FileKind::kTemporary && IsStaleTemporary(entry);
    catalog.total_bytes += file.bytes;
    catalog.files.push_back(std::move(file));
  }
}

}  // namespace

Result<Catalog> ScanStore(const Directory& root) {
  Catalog catalog;
  ScanFolder(root, "", catalog);
  for (const char* name :
       {kPromptsName, kModelsName, kPinsName, kQuarantineName}) {
    const auto folder = root.Sub(name);
    if (folder.ok()) ScanFolder(*folder, name, catalog);
  }
  const auto blocks = root.Sub(kBlocksName);
  if (!blocks.ok()) {
    if (blocks.error().code == Code::kNotFound) return catalog;
    return blocks.error();
  }
  HEARTH_ASSIGN(const std::vector<std::string> names, blocks->Names());
  for (const std::string& name : names) {
    const auto folder = blocks->Sub(name);
    if (!folder.ok()) continue;
    ScanFolder(*folder, std::string(kBlocksName) + "/" + name, catalog);
  }
  return catalog;
}

Result<Directory> OpenFolder(const Directory& root, const std::string& folder) {
  const std::size_t slash = folder.find('/');
  HEARTH_ASSIGN(Directory first, root.Sub(folder.substr(0, slash)));
  if (slash == std::string::npos) return first;
  return first.Sub(folder.substr(slash + 1));
}

std::string StemOf(const std::string& name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return "";
  return name.substr(0, name.size() - suffix.size());
}

Result<PromptHeader> ReadManifest(const Directory& prompts,
                                  const std::string& name) {
  HEARTH_ASSIGN(const FileBytes file, ReadStored(prompts, name));
  return ParsePromptFile(file.bytes, prompts.PathOf(name));
}

}  // namespace hearth
