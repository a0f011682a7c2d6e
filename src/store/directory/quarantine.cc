#include "store/directory/quarantine.h"

#include <utility>

#include "store/directory/layout.h"

namespace hearth {
namespace {

Result<Directory> MakeOne(const Directory& root, const Directory& parent,
                          const std::string& name,
                          std::vector<Directory>& unflushed) {
  bool made = false;
  auto folder = parent.MakeSub(name, &made);
  if (!folder.ok() && folder.error().code == Code::kInvalidArgument &&
      SetAside(root, parent, name)) {
    folder = parent.MakeSub(name, &made);
  }
  if (!folder.ok() || !made) return folder;
  HEARTH_ASSIGN(Directory again, parent.Again());
  unflushed.push_back(std::move(again));
  return folder;
}

}  // namespace

bool SetAside(const Directory& root, const Directory& folder,
              const std::string& name) {
  auto quarantine = root.MakeSub(kQuarantineName);
  if (!quarantine.ok() && quarantine.error().code == Code::kInvalidArgument) {
    // Nothing worth keeping is ever in its place.
    (void)root.Remove(kQuarantineName);
    quarantine = root.MakeSub(kQuarantineName);
  }
  const auto entry = folder.Stat(name);
  if (!quarantine.ok() || !entry.ok()) return false;
  return folder.MoveTo(name, *quarantine, name).ok() ||
         folder
             .MoveTo(name, *quarantine,
                     name + "-" + std::to_string(entry->inode))
             .ok();
}

Result<Directory> OpenFolder(const Directory& root, const std::string& folder) {
  const std::size_t slash = folder.find('/');
  HEARTH_ASSIGN(Directory first, root.Sub(folder.substr(0, slash)));
  if (slash == std::string::npos) return first;
  return first.Sub(folder.substr(slash + 1));
}

Result<Directory> MakeFolder(const Directory& root, const std::string& folder,
                             std::vector<Directory>& unflushed) {
  const std::size_t slash = folder.find('/');
  HEARTH_ASSIGN(Directory first,
                MakeOne(root, root, folder.substr(0, slash), unflushed));
  if (slash == std::string::npos) return first;
  return MakeOne(root, first, folder.substr(slash + 1), unflushed);
}

}  // namespace hearth
