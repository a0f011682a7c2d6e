#include "base/files/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/files/temporary_name.h"

namespace hearth {
namespace {

DirectoryEntry EntryOf(std::string name, const struct stat& st) {
  DirectoryEntry entry;
  entry.name = std::move(name);
  entry.is_directory = S_ISDIR(st.st_mode);
  entry.is_file = S_ISREG(st.st_mode);
  entry.size = static_cast<std::uint64_t>(st.st_size);
  entry.mtime_ns =
      std::int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec;
  entry.inode = st.st_ino;
  return entry;
}

bool IsOneComponent(const std::string& name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find('/') == std::string::npos &&
         name.find('\0') == std::string::npos;
}

Result<void> WriteParts(FileOps& ops, int fd, std::span<const ByteSpan> parts,
                        const std::string& path) {
  for (ByteSpan part : parts) {
    while (!part.empty()) {
      const ssize_t n = ops.Write(fd, part.data(), part.size());
      if (n < 0) {
        if (errno == EINTR) continue;
        return SystemError(errno, path);
      }
      if (n == 0) return {Code::kIo, path + ": nothing written"};
      part = part.subspan(static_cast<std::size_t>(n));
    }
  }
  return {};
}

}  // namespace

Result<Directory> Directory::Open(FileOps& ops, const std::string& path,
                                  const Vault* vault) {
  const int fd =
      ops.OpenAt(AT_FDCWD, path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) {
    if (errno == ENOTDIR) {
      return {Code::kInvalidArgument, path + ": not a directory"};
    }
    return SystemError(errno, path);
  }
  return Directory(&ops, fd, path, vault);
}

Directory::~Directory() {
  if (fd_ >= 0) ::close(fd_);
}

Directory::Directory(Directory&& other) noexcept
    : ops_(other.ops_),
      vault_(other.vault_),
      fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)) {}

Directory& Directory::operator=(Directory&& other) noexcept {
  if (this != &other) {
    if (fd_ >= 0) ::close(fd_);
    ops_ = other.ops_;
    vault_ = other.vault_;
    fd_ = std::exchange(other.fd_, -1);
    path_ = std::move(other.path_);
  }
  return *this;
}

Result<Directory> Directory::Sub(const std::string& name) const {
  HEARTH_CHECK(IsOneComponent(name));
  const int fd = ops_->OpenAt(
      fd_, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
  if (fd < 0) {
    // The name itself: there is no path that could lead through a file.
    if (errno == ENOTDIR) return WrongKindError(PathOf(name));
    return SystemError(errno, PathOf(name));
  }
  return Directory(ops_, fd, PathOf(name), vault_);
}

Result<Directory> Directory::Again() const {
  const int fd = ::fcntl(fd_, F_DUPFD_CLOEXEC, 0);
  if (fd < 0) return SystemError(errno, path_);
  return Directory(ops_, fd, path_, vault_);
}

void Directory::OpenToOwner() const { (void)::fchmod(fd_, 0700); }

void Directory::OpenToOwner(const std::string& name) const {
  HEARTH_CHECK(IsOneComponent(name));
  const auto entry = Stat(name);
  if (entry.ok() && entry->is_directory) {
    (void)::fchmodat(fd_, name.c_str(), 0700, 0);
  }
}

Result<Directory> Directory::MakeSub(const std::string& name,
                                     bool* made) const {
  HEARTH_CHECK(IsOneComponent(name));
  if (ops_->MkdirAt(fd_, name.c_str(), 0700) == 0) {
    if (made != nullptr) {
      *made = true;
    } else {
      // Else a crash could lose the directory with flushed files in it.
      HEARTH_TRY(Sync());
    }
  } else if (errno != EEXIST) {
    const int number = errno;
    auto existing = Sub(name);  // a read-only system may say EROFS first
    if (existing.ok()) return existing;
    return SystemError(number, PathOf(name));
  }
  return Sub(name);
}

Result<MappedFile> Directory::Map(const std::string& name) const {
  HEARTH_CHECK(IsOneComponent(name));
  const UniqueFd fd(ops_->OpenAt(
      fd_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0));
  if (fd.get() < 0) return SystemError(errno, PathOf(name));
  return MappedFile::FromDescriptor(fd.get(), PathOf(name));
}

Result<std::vector<std::byte>> Directory::ReadStart(
    const std::string& name, std::size_t size_max) const {
  HEARTH_CHECK(IsOneComponent(name));
  const UniqueFd fd(ops_->OpenAt(
      fd_, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0));
  if (fd.get() < 0) return SystemError(errno, PathOf(name));
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) return SystemError(errno, PathOf(name));
  if (!S_ISREG(st.st_mode)) return WrongKindError(PathOf(name));
  std::vector<std::byte> bytes(
      std::min(size_max, static_cast<std::size_t>(st.st_size)));
  std::size_t n_read = 0;
  while (n_read < bytes.size()) {
    const ssize_t n =
        ops_->Read(fd.get(), bytes.data() + n_read, bytes.size() - n_read);
    if (n < 0) {
      if (errno == EINTR) continue;
      return SystemError(errno, PathOf(name));
    }
    if (n == 0) break;
    n_read += static_cast<std::size_t>(n);
  }
  bytes.resize(n_read);
  return bytes;
}

Result<DirectoryEntry> Directory::Stat(const std::string& name) const {
  HEARTH_CHECK(IsOneComponent(name));
  struct stat st;
  if (ops_->FstatAt(fd_, name.c_str(), &st) != 0) {
    return SystemError(errno, PathOf(name));
  }
  return EntryOf(name, st);
}

Result<PendingFile> Directory::Create(const std::string& name,
                                      std::uint64_t size) const {
  HEARTH_CHECK(IsOneComponent(name));
  std::string temporary = TemporaryName(name);
  const int fd =
      ops_->OpenAt(fd_, temporary.c_str(),
                   O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
  if (fd < 0) return SystemError(errno, PathOf(name));
  PendingFile file(this, name, std::move(temporary), fd);
  if (ops_->Truncate(fd, static_cast<off_t>(size)) != 0) {
    return SystemError(errno, PathOf(name));
  }
  return file;
}

Result<void> Directory::Sync() const {
  if (ops_->Fsync(fd_) == 0) return {};
  // Some file systems have no flush for directories: their names are as durable
  // as they ever get.
  if (errno == EINVAL || errno == ENOTSUP) return {};
  return SystemError(errno, path_);
}

Result<void> Directory::Write(const std::string& name,
                              std::span<const ByteSpan> parts,
                              Durability durability) const {
  std::uint64_t size = 0;
  for (const ByteSpan part : parts) size += part.size();
  HEARTH_ASSIGN(PendingFile file, Create(name, size));
  HEARTH_TRY(file.Fill(parts));
  if (durability == Durability::kCached) return file.Publish();
  HEARTH_TRY(file.Flush());
  HEARTH_TRY(file.Publish());
  return Sync();
}

PendingFile::PendingFile(const Directory* directory, std::string name,
                         std::string temporary, int fd)
    : directory_(directory),
      name_(std::move(name)),
      temporary_(std::move(temporary)),
      fd_(fd) {}

PendingFile::PendingFile(PendingFile&& other) noexcept
    : directory_(std::exchange(other.directory_, nullptr)),
      name_(std::move(other.name_)),
      temporary_(std::move(other.temporary_)),
      fd_(std::exchange(other.fd_, -1)) {}

PendingFile::~PendingFile() {
  if (fd_ >= 0) ::close(fd_);
  if (directory_ != nullptr) {
    directory_->ops_->UnlinkAt(directory_->fd_, temporary_.c_str(), 0);
  }
}

Result<void> PendingFile::Fill(std::span<const ByteSpan> parts) {
  HEARTH_TRY(
      WriteParts(*directory_->ops_, fd_, parts, directory_->PathOf(name_)));
  directory_->ops_->StartWriteback(fd_);
  return {};
}

Result<MappedFile> PendingFile::Map() const {
  return directory_->Map(temporary_);
}

Result<void> PendingFile::Flush() {
  if (directory_->ops_->Fsync(fd_) != 0) {
    return SystemError(errno, directory_->PathOf(name_));
  }
  return {};
}

Result<void> PendingFile::Publish() {
  if (directory_->ops_->RenameAt(directory_->fd_, temporary_.c_str(),
                                 directory_->fd_, name_.c_str()) != 0) {
    return SystemError(errno, directory_->PathOf(name_));
  }
  directory_ = nullptr;
  return {};
}

Result<void> Directory::Remove(const std::string& name) const {
  HEARTH_CHECK(IsOneComponent(name));
  if (ops_->UnlinkAt(fd_, name.c_str(), 0) != 0) {
    return SystemError(errno, PathOf(name));
  }
  return {};
}

Result<void> Directory::RemoveSub(const std::string& name) const {
  HEARTH_CHECK(IsOneComponent(name));
  if (ops_->UnlinkAt(fd_, name.c_str(), AT_REMOVEDIR) != 0) {
    return SystemError(errno, PathOf(name));
  }
  return {};
}

Result<void> Directory::MoveTo(const std::string& name, const Directory& to,
                               const std::string& new_name) const {
  HEARTH_CHECK(IsOneComponent(name) && IsOneComponent(new_name));
  if (ops_->RenameAt(fd_, name.c_str(), to.fd_, new_name.c_str()) != 0) {
    return SystemError(errno, PathOf(name));
  }
  return {};
}

Result<void> Directory::Touch(const std::string& name,
                              std::int64_t stamp_ns) const {
  HEARTH_CHECK(IsOneComponent(name));
  if (ops_->TouchAt(fd_, name.c_str(), stamp_ns) != 0) {
    return SystemError(errno, PathOf(name));
  }
  return {};
}

Result<std::vector<std::string>> Directory::Names() const {
  // A descriptor of its own: two listings must not share one read position.
  const int fd = ops_->OpenAt(fd_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
  if (fd < 0) return SystemError(errno, path_);
  DIR* stream = ::fdopendir(fd);
  if (stream == nullptr) {
    const int number = errno;
    ::close(fd);
    return SystemError(number, path_);
  }
  std::vector<std::string> names;
  errno = 0;
  while (const dirent* found = ::readdir(stream)) {
    const std::string_view name = found->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  const int number = errno;
  ::closedir(stream);
  if (number != 0) return SystemError(number, path_);
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::vector<DirectoryEntry>> Directory::List() const {
  HEARTH_ASSIGN(std::vector<std::string> names, Names());
  std::vector<DirectoryEntry> entries;
  entries.reserve(names.size());
  for (std::string& name : names) {
    struct stat st;
    if (ops_->FstatAt(fd_, name.c_str(), &st) != 0) continue;
    entries.push_back(EntryOf(std::move(name), st));
  }
  return entries;
}

std::int64_t Directory::BirthNs(const std::string& name) const {
  struct statx st = {};
  if (::statx(fd_, name.c_str(), AT_SYMLINK_NOFOLLOW, STATX_BTIME, &st) != 0 ||
      (st.stx_mask & STATX_BTIME) == 0) {
    return 0;
  }
  return std::int64_t{st.stx_btime.tv_sec} * 1'000'000'000 +
         st.stx_btime.tv_nsec;
}

Result<UniqueFd> Directory::OpenForUpdate(const std::string& name) const {
  HEARTH_CHECK(IsOneComponent(name));
  UniqueFd fd(ops_->OpenAt(
      fd_, name.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
      0600));
  if (fd.get() < 0) {
    if (errno == EISDIR || errno == ENXIO) return WrongKindError(PathOf(name));
    return SystemError(errno, PathOf(name));
  }
  struct stat st;
  if (::fstat(fd.get(), &st) != 0) return SystemError(errno, PathOf(name));
  if (!S_ISREG(st.st_mode)) return WrongKindError(PathOf(name));
  return fd;
}

std::int64_t NowNs() {
  struct timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

}  // namespace hearth
