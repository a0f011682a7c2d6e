#include "store/directory/catalog.h"

#include <algorithm>
#include <utility>

#include "base/files/temporary_name.h"
#include "base/files/vault.h"
#include "store/directory/layout.h"

namespace hearth {
namespace {

bool IsDeep(const std::string& folder) {
  return std::find(kDeepFolders.begin(), kDeepFolders.end(), folder) !=
         kDeepFolders.end();
}

// Fills in what the name tells.
FileKind KindOf(const std::string& folder, const std::string& name,
                CatalogFile& file) {
  if (IsTemporary(name)) return FileKind::kTemporary;
  if (IsDeep(folder)) return FileKind::kUnknown;
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
  const bool is_state = folder.starts_with(kStatesName);
  const auto block_id = is_state ? std::nullopt : BlockIdOf(name);
  const auto state = is_state ? StateNameOf(name) : std::nullopt;
  if (!block_id && !state) return FileKind::kUnknown;
  file.id = is_state ? state->id : *block_id;
  if (!folder.ends_with("/" + BlockFolder(file.id))) return FileKind::kUnknown;
  if (is_state) file.position = state->position;
  return is_state ? FileKind::kState : FileKind::kBlock;
}

// Of the root only files are taken up, and what stands in a folder's place.
void ScanFolder(const Directory& folder, const std::string& path,
                std::int64_t now_ns, Catalog& catalog) {
  const auto entries = folder.List();
  if (!entries.ok()) return;
  const bool holds_folders = path.empty() || IsDeep(path);
  for (const DirectoryEntry& entry : *entries) {
    if (entry.is_directory && holds_folders) continue;
    CatalogFile file;
    file.is_regular = entry.is_file;
    file.is_directory = entry.is_directory;
    file.kind = KindOf(path, entry.name, file);
    if (entry.is_directory && file.kind == FileKind::kTemporary) {
      file.kind = FileKind::kUnknown;
    }
    file.folder = path;
    file.name = entry.name;
    file.bytes = entry.is_file ? entry.size : 0;
    file.last_use_ns = LastUseNs(entry.mtime_ns, now_ns);
    file.stale = file.kind == FileKind::kTemporary && IsStaleTemporary(entry);
    catalog.total_bytes += file.bytes;
    catalog.files.push_back(std::move(file));
  }
}

}  // namespace

Result<Catalog> ScanStore(const Directory& root) {
  const std::int64_t now_ns = NowNs();
  Catalog catalog;
  ScanFolder(root, "", now_ns, catalog);
  for (const char* name : kFlatFolders) {
    const auto folder = root.Sub(name);
    if (folder.ok()) ScanFolder(*folder, name, now_ns, catalog);
  }
  for (const char* deep : kDeepFolders) {
    const auto above = root.Sub(deep);
    // Missing, or something else that the next save sets aside.
    if (!above.ok()) continue;
    ScanFolder(*above, deep, now_ns, catalog);
    HEARTH_ASSIGN(const std::vector<std::string> names, above->Names());
    for (const std::string& name : names) {
      const auto folder = above->Sub(name);
      if (!folder.ok()) continue;
      ScanFolder(*folder, std::string(deep) + "/" + name, now_ns, catalog);
    }
  }
  return catalog;
}

std::string StemOf(const std::string& name, std::string_view suffix) {
  if (!name.ends_with(suffix)) return "";
  return name.substr(0, name.size() - suffix.size());
}

std::int64_t LastUseNs(std::int64_t mtime_ns, std::int64_t now_ns) {
  constexpr std::int64_t kSlackNs = std::int64_t{3600} * 1'000'000'000;
  if (mtime_ns <= now_ns + kSlackNs) return mtime_ns;
  return now_ns - (mtime_ns - now_ns);
}

std::vector<std::string> RecentManifests(const Directory& prompts,
                                         const std::string& model_name,
                                         std::size_t n_max) {
  auto entries = prompts.List();
  if (!entries.ok()) return {};
  const std::string prefix = SanitizedName(model_name) + "-";
  std::erase_if(*entries, [&](const DirectoryEntry& entry) {
    return !entry.is_file || !entry.name.starts_with(prefix) ||
           !entry.name.ends_with(kPromptSuffix);
  });
  const std::int64_t now_ns = NowNs();
  std::stable_sort(entries->begin(), entries->end(),
                   [now_ns](const DirectoryEntry& a, const DirectoryEntry& b) {
                     return LastUseNs(a.mtime_ns, now_ns) >
                            LastUseNs(b.mtime_ns, now_ns);
                   });
  if (entries->size() > n_max) entries->resize(n_max);
  std::vector<std::string> names;
  for (DirectoryEntry& entry : *entries) names.push_back(std::move(entry.name));
  return names;
}

Result<PromptHeader> ReadManifest(const Directory& prompts,
                                  const std::string& name) {
  HEARTH_ASSIGN(const FileBytes file,
                ReadStored(prompts, name, kManifestBytesMax));
  HEARTH_ASSIGN(PromptHeader header,
                ParsePromptFile(file.bytes, prompts.PathOf(name)));
  if (PromptStem(header.model_name, header.entries.back().id) !=
      StemOf(name, kPromptSuffix)) {
    return {Code::kCorrupt,
            prompts.PathOf(name) + ": another prompt than its name says"};
  }
  return header;
}

}  // namespace hearth
