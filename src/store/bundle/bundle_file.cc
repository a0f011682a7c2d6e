#include "store/bundle/bundle_file.h"

#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/files/directory.h"
#include "base/files/system_error.h"
#include "base/files/temporary_name.h"

namespace hearth {
namespace {

struct Target {
  std::string folder, name;
};

Result<Target> TargetOf(const std::string& path) {
  std::error_code ignored, unresolved;
  const std::filesystem::path target =
      std::filesystem::is_symlink(path, ignored)
          ? std::filesystem::canonical(path, unresolved)
          : std::filesystem::path(path);
  Target found{target.parent_path().string(), target.filename().string()};
  if (found.folder.empty()) found.folder = ".";
  if (unresolved || found.name.empty() || found.name == "." ||
      found.name == "..") {
    return {Code::kInvalidArgument, path + ": not a name for a file"};
  }
  return found;
}

Result<void> RefuseForeignFile(const std::string& path) {
  const auto file = MappedFile::Open(path);
  if (!file.ok()) {
    if (file.error().code == Code::kNotFound) return {};
    return file.error();
  }
  // An empty file holds nothing that could be lost.
  if (file->bytes().empty()) return {};
  const ByteSpan start =
      file->bytes().first(std::min(file->bytes().size(), kImageAlign));
  HEARTH_TRY(PopulateMapped(start, path));
  if (LooksLikePromptFile(start) || LooksSealed(start)) return {};
  return {Code::kInvalidArgument,
          path + ": exists and is not a hearth prompt cache; not overwritten"};
}

}  // namespace

Result<void> CheckBundleTarget(const std::string& path, FileOps& ops) {
  HEARTH_TRY(RefuseForeignFile(path));
  HEARTH_ASSIGN(const Target target, TargetOf(path));
  const auto folder = Directory::Open(ops, target.folder);
  if (folder.ok() || folder.error().code == Code::kIo) return {};
  return {Code::kInvalidArgument, folder.error().message};
}

Result<void> WriteBundle(const std::string& path,
                         std::span<const ByteSpan> parts, FileOps& ops,
                         const Vault* vault) {
  HEARTH_TRY(RefuseForeignFile(path));
  HEARTH_ASSIGN(const Target target, TargetOf(path));
  HEARTH_ASSIGN(const Directory folder, Directory::Open(ops, target.folder));
  SweepTemporariesOf(folder, target.name);
  std::vector<std::byte> sealed;
  HEARTH_ASSIGN(const auto written, ForDisk(vault, parts, sealed));
  return folder.Write(target.name, written);
}

Result<OpenBundle> ReadBundle(const std::string& path, const Vault* vault) {
  HEARTH_ASSIGN(MappedFile mapped, MappedFile::Open(path));
  // Before all of it is read: whether it is one at all.
  const ByteSpan start =
      mapped.bytes().first(std::min(mapped.bytes().size(), kImageAlign));
  HEARTH_TRY(PopulateMapped(start, path));
  if (vault == nullptr && !LooksSealed(start) && !LooksLikePromptFile(start)) {
    return {Code::kCorrupt, path + ": not a hearth prompt file (wrong magic)"};
  }
  OpenBundle bundle;
  HEARTH_ASSIGN(bundle.file,
                ReadStored(std::move(mapped), vault, kBundleBytesMax));
  HEARTH_ASSIGN(bundle.header, ParsePromptFile(bundle.file.bytes, path));
  if (!bundle.header.holds_images()) {
    return {Code::kInvalidArgument,
            path + ": a manifest, which does not hold its blocks"};
  }
  bundle.is_mapped = vault == nullptr;
  return bundle;
}

}  // namespace hearth
