#include "store/directory/root.h"

#include <algorithm>
#include <string_view>

#include "store/directory/layout.h"
#include "store/files/temporary_name.h"

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
           entry.name == kModelsName || entry.name == kPinsName ||
           entry.name == kQuarantineName;
  }
  // The second: another process is making this very store.
  return entry.name == kUsageName || entry.name.starts_with(kVersionName);
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
            path +
                ": not empty and not a hearth store; choose another "
                "directory"};
  }
  const ByteSpan parts[] = {AsBytes(kVersionText)};
  return root->Write(kVersionName, parts);
}

void SweepTemporariesOf(const Directory& folder, const std::string& name) {
  const auto names = folder.Names();
  if (!names.ok()) return;
  for (const std::string& found : *names) {
    if (!IsTemporary(found) || !found.starts_with(name)) continue;
    const auto entry = folder.Stat(found);
    if (entry.ok() && IsStaleTemporary(*entry)) (void)folder.Remove(found);
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
  const auto folders = blocks->Names();
  if (!folders.ok()) return;
  for (const std::string& name : *folders) {
    const auto folder = blocks->Sub(name);
    if (folder.ok()) SweepFolder(*folder);
  }
}

}  // namespace hearth
