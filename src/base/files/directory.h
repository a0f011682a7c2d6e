// One open directory and what is done inside it. Every name is a single path
// component and no link is ever followed, so that nothing below the directory
// can lead out of it.
//
// Errors  as system_error.h; kInvalidArgument also for what is not the kind of
//         file that was asked for.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/file.h"
#include "base/files/file_ops.h"
#include "base/files/system_error.h"
#include "hearth/result.h"

namespace hearth {

struct DirectoryEntry {
  std::string name;
  bool is_directory = false;
  bool is_file = false;       // regular; neither: a link, device, pipe
  std::uint64_t size = 0;     // length in bytes
  std::int64_t mtime_ns = 0;  // last use
  std::uint64_t inode = 0;
};

enum class Durability { kDurable, kCached };

class Directory;
class Vault;

// A file that is written but not visible yet. Destroyed unpublished, it leaves
// nothing behind. Many can be begun before the first is flushed, so that the
// disk works on all of them at once. Must not outlive its directory.
class PendingFile {
 public:
  ~PendingFile();
  PendingFile(PendingFile&& other) noexcept;
  PendingFile& operator=(PendingFile&&) = delete;

  // Writes the parts from the start; they must fill the size it was made with.
  Result<void> Fill(std::span<const ByteSpan> parts);
  Result<MappedFile> Map() const;  // REQUIRES: not published
  Result<void> Flush();            // its bytes are durable
  // It has its name; durable after Directory::Sync. May be tried again.
  Result<void> Publish();
  const std::string& name() const { return name_; }
  const Directory& folder() const { return *directory_; }  // as Map

 private:
  friend class Directory;
  PendingFile(const Directory* directory, std::string name,
              std::string temporary, int fd);

  const Directory* directory_;  // null: published or moved from
  std::string name_, temporary_;
  int fd_;
};

class Directory {
 public:
  // The one place where a path is followed: the root, as the user gave it.
  // `vault`: what ReadStored and ForDisk use here and in all directories below;
  // null: files are plain. Must outlive them.
  static Result<Directory> Open(FileOps& ops, const std::string& path,
                                const Vault* vault = nullptr);
  ~Directory();
  Directory(Directory&& other) noexcept;
  Directory& operator=(Directory&& other) noexcept;

  const std::string& path() const { return path_; }  // for messages
  std::string PathOf(const std::string& name) const {
    return path_ + "/" + name;
  }

  Result<Directory> Sub(const std::string& name) const;
  // The same directory once more.
  Result<Directory> Again() const;
  // Sub, made (mode 0700, durably) when missing. With `made`, says so there
  // instead of flushing, and the caller must Sync.
  Result<Directory> MakeSub(const std::string& name,
                            bool* made = nullptr) const;

  Result<MappedFile> Map(const std::string& name) const;
  // At most `size_max` first bytes of the file.
  Result<std::vector<std::byte>> ReadStart(const std::string& name,
                                           std::size_t size_max) const;
  Result<DirectoryEntry> Stat(const std::string& name) const;
  bool Exists(const std::string& name) const { return Stat(name).ok(); }

  // Writes the parts to a temporary file, flushes it, renames it to `name` and
  // flushes the directory. kCached leaves out both flushes. On an error `name`
  // is as it was (or, when only the last flush failed, complete).
  Result<void> Write(const std::string& name, std::span<const ByteSpan> parts,
                     Durability durability = Durability::kDurable) const;

  // Write in steps. The file has its full length at once, so that whoever
  // adds up the store counts what is still being written.
  Result<PendingFile> Create(const std::string& name, std::uint64_t size) const;
  Result<void> Sync() const;  // names made and changed here are durable

  Result<void> Remove(const std::string& name) const;
  Result<void> RemoveSub(const std::string& name) const;  // an empty one
  Result<void> MoveTo(const std::string& name, const Directory& to,
                      const std::string& new_name) const;
  // Gives its owner all rights to this directory, or to the directory `name` in
  // it, where the system allows that.
  void OpenToOwner() const;
  void OpenToOwner(const std::string& name) const;
  // Sets the last use.
  Result<void> Touch(const std::string& name, std::int64_t stamp_ns) const;
  // Everything inside but "." and "..", sorted by name. A name that vanishes
  // meanwhile is left out.
  Result<std::vector<DirectoryEntry>> List() const;
  // Names alone, without a look at each file.
  Result<std::vector<std::string>> Names() const;
  // When the file was made, in ns since 1970; 0 where the system does not say.
  std::int64_t BirthNs(const std::string& name) const;
  // Opens the regular file `name` for reading and writing in place, made when
  // missing.
  Result<UniqueFd> OpenForUpdate(const std::string& name) const;
  FileOps& ops() const { return *ops_; }
  const Vault* vault() const { return vault_; }
  // -1 when unknown.
  long long FreeBytes() const { return ops_->FreeBytes(fd_); }

 private:
  friend class PendingFile;
  Directory(FileOps* ops, int fd, std::string path, const Vault* vault)
      : ops_(ops), vault_(vault), fd_(fd), path_(std::move(path)) {}

  FileOps* ops_;
  const Vault* vault_;
  int fd_;
  std::string path_;
};

std::int64_t NowNs();  // since 1970

}  // namespace hearth
