#include "store/memo/side_files.h"

#include <utility>
#include <vector>

#include "store/directory/root.h"

namespace hearth {

SideFiles::SideFiles(std::string root, const SpaceLimits& limits,
                     std::shared_ptr<const Vault> vault, FileOps* ops)
    : root_(std::move(root)),
      limits_(limits),
      vault_(std::move(vault)),
      ops_(ops != nullptr ? ops : &FileOps::System()) {}

std::string SideFiles::NameOf(const std::string& name) const {
  if (vault_ == nullptr) return name;
  const std::size_t dot = name.find('.');
  const ByteSpan parts[] = {AsBytes(name)};
  return ToHex(vault_->Mac("hearth side file", parts), 16) +
         (dot == std::string::npos ? "" : name.substr(dot));
}

std::optional<FileBytes> SideFiles::Find(const std::string& name,
                                         std::uint64_t bytes_max) const {
  const auto root = Directory::Open(*ops_, root_, vault_.get());
  if (!root.ok()) return std::nullopt;
  const StorePath path = SidePath(NameOf(name));
  const auto folder = root->Sub(path.folder);
  if (!folder.ok()) return std::nullopt;
  auto file = ReadStored(*folder, path.name, bytes_max);
  if (!file.ok()) return std::nullopt;
  (void)folder->Touch(path.name, NowNs());
  return std::move(file).value();
}

Result<void> SideFiles::Write(const std::string& name, ByteSpan bytes,
                              Durability durability, Room room) const {
  HEARTH_TRY(PrepareRoot(*ops_, root_));
  HEARTH_ASSIGN(Directory root, Directory::Open(*ops_, root_, vault_.get()));
  const BudgetedWriter writer(std::move(root), limits_);
  std::vector<std::byte> sealed;
  HEARTH_ASSIGN(auto parts,
                ForDisk(vault_.get(), std::span(&bytes, 1), sealed));
  const FileToWrite file{SidePath(NameOf(name)), std::move(parts), durability};
  return writer.Write(std::span(&file, 1), {}, room);
}

}  // namespace hearth
