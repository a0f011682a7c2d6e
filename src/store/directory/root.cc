#include "store/directory/root.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "base/files/temporary_name.h"
#include "store/directory/layout.h"
#include "store/directory/quarantine.h"

namespace hearth {
namespace {

constexpr std::size_t kVersionBytesMax = 64;

enum class Version { kOurs, kMissing, kDamaged };

// kIncompatible: that of another program.
Result<Version> VersionOf(const Directory& root) {
  const auto bytes = root.ReadStart(kVersionName, kVersionBytesMax);
  if (!bytes.ok()) {
    if (bytes.error().code == Code::kNotFound) return Version::kMissing;
    if (bytes.error().code != Code::kInvalidArgument) return bytes.error();
    return Version::kDamaged;  // a link, pipe or directory in its place
  }
  const std::string_view text = AsText(*bytes);
  if (text == kVersionText) return Version::kOurs;
  constexpr std::string_view kStart = "hearth store ";
  const std::string_view number =
      text.starts_with(kStart) ? text.substr(kStart.size()) : "";
  const bool is_number =
      number.size() >= 2 && number.back() == '\n' &&
      number.find_first_not_of("0123456789") == number.size() - 1;
  if (!is_number) return Version::kDamaged;
  return {Code::kIncompatible,
          root.PathOf(kVersionName) +
              ": not the version of this program; choose another directory"};
}

// What a system or its tools put into any directory.
bool IsSystems(std::string_view name) {
  constexpr std::string_view kNames[] = {
      "lost+found",   ".DS_Store",  ".Trashes",   ".fseventsd",
      ".snapshot",    ".snapshots", ".directory", "Thumbs.db",
      "desktop.ini",  "@eaDir",     ".localized", ".Spotlight-V100",
      "$RECYCLE.BIN", ".stfolder",  ".zfs",       "System Volume Information"};
  return std::find(std::begin(kNames), std::end(kNames), name) !=
             std::end(kNames) ||
         name.starts_with(".nfs") || name.starts_with(".Trash-") ||
         name.starts_with("._");
}

bool IsOurs(const DirectoryEntry& entry) {
  // `responses` is the server's. The last: another process is making this very
  // store.
  return IsStoreFolder(entry.name) || entry.name == kUsageName ||
         entry.name == "responses" || entry.name.starts_with(kVersionName);
}

// Whether a store's folders are there, so that a VERSION that says nothing is a
// damaged one and not somebody else's file.
bool HasStoreFolder(const std::vector<DirectoryEntry>& entries) {
  return std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
    return entry.is_directory && IsStoreFolder(entry.name);
  });
}

}  // namespace

Result<void> PrepareRoot(FileOps& ops, const std::string& path) {
  auto root = Directory::Open(ops, path);
  if (!root.ok()) {
    if (root.error().code != Code::kNotFound) return root.error();
    HEARTH_TRY(MakeDirectories(path));
    root = Directory::Open(ops, path);
    if (!root.ok()) return root.error();
  }
  HEARTH_ASSIGN(const Version version, VersionOf(*root));
  if (version == Version::kOurs) return {};
  HEARTH_ASSIGN(const std::vector<DirectoryEntry> entries, root->List());
  const bool foreign =
      std::any_of(entries.begin(), entries.end(), [](const auto& entry) {
        return !IsOurs(entry) && !IsSystems(entry.name);
      });
  if (foreign || (version == Version::kDamaged && !HasStoreFolder(entries))) {
    return {Code::kInvalidArgument,
            path +
                ": not empty and not a hearth store; choose another "
                "directory"};
  }
  // A damaged one costs nothing but itself: every file says what it is.
  if (version == Version::kDamaged) (void)SetAside(*root, *root, kVersionName);
  const ByteSpan parts[] = {AsBytes(kVersionText)};
  const auto written = root->Write(kVersionName, parts);
  // What can be read can be used, whatever VERSION says.
  if (!written.ok() && version == Version::kDamaged) return {};
  return written;
}

void SweepTemporaries(const Directory& root) {
  SweepTemporariesOf(root, "");
  for (const char* name : kFlatFolders) {
    const auto folder = root.Sub(name);
    if (folder.ok()) SweepTemporariesOf(*folder, "");
  }
  for (const char* deep : kDeepFolders) {
    const auto above = root.Sub(deep);
    if (!above.ok()) continue;
    const auto folders = above->Names();
    if (!folders.ok()) continue;
    for (const std::string& name : *folders) {
      const auto folder = above->Sub(name);
      if (folder.ok()) SweepTemporariesOf(*folder, "");
    }
  }
}

}  // namespace hearth
