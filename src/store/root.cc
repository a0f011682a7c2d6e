#include "store/root.h"

#include <algorithm>
#include <string_view>

#include "store/layout.h"

namespace hearth {
namespace {

constexpr std::size_t kVersionBytesMax = 64;

// Whether the root states the version that we write. kNotFound: states none.
Result<void> CheckVersion(const Directory& root) {
  HEARTH_ASSIGN(const std::vector<std::byte> bytes,
                root.ReadStart(kVersionName, kVersionBytesMax));
  if (AsText(bytes) == kVersionText) return {};
  return {Code::kIncompatible,
          root.PathOf(kVersionName) +
              ": not the version of this program; choose another directory"};
}

bool IsOurs(const DirectoryEntry& entry) {
  if (entry.is_directory) {
    return entry.name == kBlocksName || entry.name == kPromptsName ||
           entry.name == kModelsName || entry.name == kQuarantineName;
  }
  // Another process is making this very store.
  return entry.name.starts_with(kVersionName);
}

void SweepFolder(const Directory& folder) { SweepTemporariesOf(folder, ""); }

}  // namespace

Result<void> PrepareRoot(FileOps& ops, const std::string& path) {
  auto root = Directory::Open(ops, path);
  if (!root.ok()) {
    if (root.error().code != Code::kNotFound) return root.error();
    HEARTH_TRY(MakeDirectories(path));
    root = Directory::Open(ops, path);
    if (!root.ok()) return root.error();
  }
  const Result<void> version = CheckVersion(*root);
  if (version.ok() || version.error().code != Code::kNotFound) return version;
  HEARTH_ASSIGN(const std::vector<DirectoryEntry> entries, root->List());
  if (!std::all_of(entries.begin(), entries.end(), IsOurs)) {
    return {Code::kInvalidArgument,
            path + ": not empty and not a hearth store; choose another "
                   "directory"};
  }
  const ByteSpan parts[] = {AsBytes(kVersionText)};
  return root->Write(kVersionName, parts);
}

void SweepTemporariesOf(const Directory& folder, const std::string& name) {
  const auto entries = folder.List();
  if (!entries.ok()) return;
  for (const DirectoryEntry& entry : *entries) {
    if (entry.name.starts_with(name) && IsStaleTemporary(entry)) {
      (void)folder.Remove(entry.name);
    }
  }
}

void SweepTemporaries(const Directory& root) {
  SweepFolder(root);
  for (const char* name : {kPromptsName, kModelsName, kQuarantineName}) {
    const auto folder = root.Sub(name);
    if (folder.ok()) SweepFolder(*folder);
  }
  const auto blocks = root.Sub(kBlocksName);
  if (!blocks.ok()) return;
  const auto folders = blocks->List();
  if (!folders.ok()) return;
  for (const DirectoryEntry& entry : *folders) {
    if (!entry.is_directory) continue;
    const auto folder = blocks->Sub(entry.name);
    if (folder.ok()) SweepFolder(*folder);
  }
}

}  // namespace hearth
