#include "base/files/output.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/files/system_error.h"
#include "base/files/temporary_name.h"

namespace hearth {
namespace {

namespace fs = std::filesystem;

constexpr int kLinksMax = 40;  // as the kernel

bool IsStandardOutput(const std::string& path) {
  return path == "-" || path == "/dev/stdout";
}

std::string ParentOf(const std::string& path) {
  const std::string parent = fs::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

// The file that a chain of links leads to; it need not exist.
Result<std::string> BehindLinks(std::string path) {
  const std::string first = path;
  for (int i = 0; i < kLinksMax; ++i) {
    struct stat st;
    if (::lstat(path.c_str(), &st) != 0 || !S_ISLNK(st.st_mode)) return path;
    std::error_code error;
    const fs::path to = fs::read_symlink(path, error);
    if (error) return Error{Code::kIo, path + ": " + error.message()};
    path = to.is_absolute() ? to.string() : (ParentOf(path) / to).string();
  }
  return SystemError(ELOOP, first);
}

// What CheckOutput found.
struct Target {
  std::string path;      // behind all links; empty: standard output
  bool through = false;  // an open file, device or pipe, or standard output
};

Result<void> CheckExisting(const std::string& path, const std::string& target,
                           const struct stat& st, const OutputRule& rule) {
  for (const std::string& input : rule.inputs) {
    struct stat in;
    if (::stat(input.c_str(), &in) == 0 && in.st_dev == st.st_dev &&
        in.st_ino == st.st_ino) {
      return {Code::kInvalidArgument, path + ": is the file that is read (" +
                                          input + "); write to another one"};
    }
  }
  if (S_ISDIR(st.st_mode)) {
    return {Code::kInvalidArgument,
            path + ": is a directory; name a file in it"};
  }
  if (::access(target.c_str(), W_OK) != 0) return SystemError(errno, path);
  if (!S_ISREG(st.st_mode) || rule.replace) return {};
  if (rule.same_kind && rule.same_kind(target)) return {};
  return {Code::kInvalidArgument,
          path +
              ": exists; choose another name, or say that it may be "
              "replaced"};
}

Result<Target> Look(const std::string& path, const OutputRule& rule) {
  if (path.empty()) return Error{Code::kInvalidArgument, "no output file"};
  if (IsStandardOutput(path)) return Target{.path = {}, .through = true};
  HEARTH_ASSIGN(const std::string target, BehindLinks(path));
  struct stat st;
  const bool exists = ::stat(target.c_str(), &st) == 0;
  if (!exists && errno != ENOENT) return SystemError(errno, path);
  if (exists) {
    HEARTH_TRY(CheckExisting(path, target, st, rule));
    if (!S_ISREG(st.st_mode)) return Target{target, true};
  }
  const std::string parent = ParentOf(target);
  if (target.ends_with('/') || ::stat(parent.c_str(), &st) != 0) {
    return SystemError(ENOENT, parent);
  }
  if (!S_ISDIR(st.st_mode)) return SystemError(ENOTDIR, parent);
  if (::access(parent.c_str(), W_OK | X_OK) != 0)
    return SystemError(errno, parent);
  return Target{target, false};
}

// Renames without replacing, where the file system can say so at once.
bool RenameToNew(const std::string& from, const std::string& to) {
  if (::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(),
                  RENAME_NOREPLACE) == 0) {
    return true;
  }
  if (errno != EINVAL && errno != ENOSYS) return false;
  struct stat st;
  if (::lstat(to.c_str(), &st) == 0) {
    errno = EEXIST;
    return false;
  }
  return ::rename(from.c_str(), to.c_str()) == 0;
}

// What killed writers of this file left beside it.
void SweepBeside(const std::string& path) {
  const auto folder = Directory::Open(FileOps::System(), ParentOf(path));
  const std::string name = fs::path(path).filename().string();
  if (folder.ok() && !name.empty()) SweepTemporariesOf(*folder, name);
}

// Some network and user-space file systems cannot flush a directory and say
// EINVAL; what they promise of a rename is theirs.
Result<void> FlushDirectory(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return SystemError(errno, path);
  const int number = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  if (number != 0 && number != EINVAL) return SystemError(number, path);
  return {};
}

}  // namespace

Result<void> CheckOutput(const std::string& path, const OutputRule& rule) {
  HEARTH_TRY(Look(path, rule));
  return {};
}

Result<OutputFile> OutputFile::Create(const std::string& path,
                                      const OutputRule& rule) {
  HEARTH_ASSIGN(const Target target, Look(path, rule));
  OutputFile file;
  file.path_ = path == "-" ? "standard output" : path;
  file.target_ = target.path;
  struct stat st;
  file.replace_ = !target.through && ::lstat(target.path.c_str(), &st) == 0;
  if (target.path.empty()) {
    file.fd_ = ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
  } else if (target.through) {
    file.fd_ = ::open(target.path.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
  } else {
    SweepBeside(target.path);
    file.temporary_ = TemporaryName(target.path);
    // The mode of what is replaced is its owner's choice.
    const mode_t mode = file.replace_ ? st.st_mode & 0777 : 0666;
    file.fd_ = ::open(file.temporary_.c_str(),
                      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (file.fd_ >= 0 && file.replace_) ::fchmod(file.fd_, mode);
  }
  if (file.fd_ < 0) return SystemError(errno, file.path_);
  return file;
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      replace_(other.replace_),
      path_(std::move(other.path_)),
      target_(std::move(other.target_)),
      temporary_(std::move(other.temporary_)) {}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Result<void> OutputFile::Append(ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return SystemError(errno, path_);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> OutputFile::Commit() {
  if (temporary_.empty()) {
    // Some file systems tell of a full disk only now.
    if (::close(std::exchange(fd_, -1)) != 0) return SystemError(errno, path_);
    return {};
  }
  if (::fsync(fd_) != 0) return SystemError(errno, path_);
  const bool named = replace_
                         ? ::rename(temporary_.c_str(), target_.c_str()) == 0
                         : RenameToNew(temporary_, target_);
  if (!named) return SystemError(errno, path_);
  ::close(std::exchange(fd_, -1));
  return FlushDirectory(ParentOf(target_));
}

Result<void> WriteOutput(const std::string& path, const OutputRule& rule,
                         std::span<const ByteSpan> parts) {
  HEARTH_ASSIGN(OutputFile file, OutputFile::Create(path, rule));
  for (const ByteSpan part : parts) HEARTH_TRY(file.Append(part));
  return file.Commit();
}

Result<void> WriteOutput(const std::string& path, const OutputRule& rule,
                         std::string_view text) {
  const ByteSpan bytes = AsBytes(text);
  return WriteOutput(path, rule, std::span(&bytes, 1));
}

Result<void> OutputDirectory::Check(const std::string& path, bool replace) {
  if (path.empty()) return {Code::kInvalidArgument, "no output directory"};
  struct stat st;
  if (::stat(path.c_str(), &st) == 0) {
    if (!S_ISDIR(st.st_mode)) {
      return {Code::kInvalidArgument, path + ": exists and is no directory"};
    }
    if (::access(path.c_str(), W_OK | X_OK) != 0)
      return SystemError(errno, path);
    std::error_code error;
    const bool empty = fs::is_empty(path, error);
    if (error) return {Code::kIo, path + ": " + error.message()};
    if (empty || replace) return {};
    return {Code::kInvalidArgument,
            path +
                ": is not empty; choose another name, or say that the model "
                "in it may be replaced"};
  }
  if (errno != ENOENT) return SystemError(errno, path);
  // Missing parents are made.
  fs::path parent = fs::absolute(path).lexically_normal();
  if (!parent.has_filename()) parent = parent.parent_path();
  do {
    parent = parent.parent_path();
  } while (::stat(parent.c_str(), &st) != 0 && parent.has_relative_path());
  if (!S_ISDIR(st.st_mode)) return SystemError(ENOTDIR, parent.string());
  if (::access(parent.c_str(), W_OK | X_OK) != 0) {
    return SystemError(errno, parent.string());
  }
  return {};
}

Result<OutputDirectory> OutputDirectory::Create(const std::string& path,
                                                bool replace, Belongs belongs) {
  HEARTH_TRY(Check(path, replace));
  OutputDirectory directory;
  directory.belongs_ = std::move(belongs);
  std::string target = path;
  while (target.size() > 1 && target.ends_with('/')) target.pop_back();
  HEARTH_ASSIGN(directory.target_, BehindLinks(target));
  std::error_code error;
  // Inside one that exists: it may be a file system of its own.
  directory.exists_ = fs::exists(directory.target_, error);
  if (!directory.exists_) {
    fs::create_directories(ParentOf(directory.target_), error);
    if (error) return Error{Code::kIo, path + ": " + error.message()};
  }
  const std::string temporary = TemporaryName(
      directory.exists_ ? directory.target_ + "/" : directory.target_);
  if (::mkdir(temporary.c_str(), 0777) != 0) return SystemError(errno, path);
  directory.temporary_ = temporary;
  return directory;
}

OutputDirectory::OutputDirectory(OutputDirectory&& other) noexcept
    : belongs_(std::move(other.belongs_)),
      exists_(other.exists_),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})) {}

OutputDirectory::~OutputDirectory() {
  if (temporary_.empty()) return;
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

// Into a directory that holds files. Those that would be read with the new
// ones go first: a crash in between leaves no mixture that loads.
Result<void> OutputDirectory::MoveInto(const std::string& target) const {
  std::error_code error;
  std::vector<fs::path> old;
  for (fs::directory_iterator it(target, error), end; !error && it != end;
       it.increment(error)) {
    if (belongs_ && belongs_(it->path().filename().string())) {
      old.push_back(it->path());
    }
  }
  for (const fs::path& path : old) {
    if (!error) fs::remove(path, error);
  }
  for (fs::directory_iterator it(temporary_, error), end; !error && it != end;
       it.increment(error)) {
    fs::rename(it->path(), fs::path(target) / it->path().filename(), error);
    if (error) break;
  }
  if (error) return {Code::kIo, target + ": " + error.message()};
  return {};
}

Result<void> OutputDirectory::Commit() {
  HEARTH_TRY(FlushDirectory(temporary_));
  if (exists_) {
    HEARTH_TRY(MoveInto(target_));
    std::error_code error;
    fs::remove(temporary_, error);
    temporary_.clear();
    return FlushDirectory(target_);
  }
  if (!RenameToNew(temporary_, target_)) return SystemError(errno, target_);
  temporary_.clear();
  return FlushDirectory(ParentOf(target_));
}

}  // namespace hearth
