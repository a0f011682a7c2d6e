// Small files in models/ that spare a launch some work: digests, speeds,
// compiled tokenizers. Losing one costs time, never an answer; with a key they
// are sealed like everything else, under names that depend on it.
//
// Threads  const methods may run at once.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/files/vault.h"
#include "hearth/result.h"
#include "store/budget/budgeted_writer.h"

namespace hearth {

class SideFiles {
 public:
  // `root`: the store's; need not exist yet. `ops`: null for the system's.
  explicit SideFiles(std::string root, const SpaceLimits& limits = {},
                     std::shared_ptr<const Vault> vault = nullptr,
                     FileOps* ops = nullptr);

  // The file's bytes, and a use of it. Anything wrong with it is no file.
  std::optional<FileBytes> Find(const std::string& name,
                                std::uint64_t bytes_max) const;
  // Makes the store when it is missing; must not write into a directory that is
  // none.
  Result<void> Write(const std::string& name, ByteSpan bytes,
                     Durability durability, Room room) const;

 private:
  // As the file is called.
  std::string NameOf(const std::string& name) const;

  std::string root_;
  SpaceLimits limits_;
  std::shared_ptr<const Vault> vault_;
  FileOps* ops_;
};

}  // namespace hearth
