#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/files/directory.h"
#include "base/files/system_error.h"
#include "base/files/temporary_name.h"

namespace hearth {
namespace {

FileStamp StampOf(const struct stat& st) {
  FileStamp stamp;
  stamp.device = st.st_dev;
  stamp.inode = st.st_ino;
  stamp.size = static_cast<std::uint64_t>(st.st_size);
  stamp.mtime_ns =
      std::int64_t{st.st_mtim.tv_sec} * 1'000'000'000 + st.st_mtim.tv_nsec;
  stamp.ctime_ns =
      std::int64_t{st.st_ctim.tv_sec} * 1'000'000'000 + st.st_ctim.tv_nsec;
  return stamp;
}

}  // namespace

std::string ErrnoText(int error_number) {
  return std::generic_category().message(error_number);
}

void AdviseHugePages(void* start, std::size_t size) {
#ifdef MADV_HUGEPAGE
  if (size > 0) (void)::madvise(start, size, MADV_HUGEPAGE);
#else
  static_cast<void>(start), static_cast<void>(size);
#endif
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      stamp_(other.stamp_),
      path_(std::move(other.path_)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  if (this != &other) {
    MappedFile old(std::move(*this));
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
    stamp_ = other.stamp_;
    path_ = std::move(other.path_);
  }
  return *this;
}

Result<MappedFile> MappedFile::Open(const std::string& path,
                                    bool follow_links) {
  const int flags =
      O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follow_links ? 0 : O_NOFOLLOW);
  UniqueFd fd(::open(path.c_str(), flags));
  if (fd.get() < 0) return SystemError(errno, path);
  return FromDescriptor(fd.get(), path);
}

Result<MappedFile> MappedFile::FromDescriptor(int fd, const std::string& path) {
  struct stat st;
  if (::fstat(fd, &st) != 0) return SystemError(errno, path);
  if (!S_ISREG(st.st_mode)) {
    return {Code::kInvalidArgument, path + ": not a regular file"};
  }
  MappedFile file;
  file.stamp_ = StampOf(st);
  file.path_ = path;
  if (st.st_size > 0) {
    const auto size = static_cast<std::size_t>(st.st_size);
    void* p = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED) return SystemError(errno, path);
    file.data_ = static_cast<const std::byte*>(p);
    file.size_ = size;
  }
  return file;
}

Result<void> MappedFile::Populate() const {
  // A file in memory stays as it is, and the hint would cost as much as mapping
  // a part of it.
  unsigned char first_page = 0;
  if (size_ > 0 &&
      ::mincore(const_cast<std::byte*>(data_), 1, &first_page) == 0 &&
      (first_page & 1) == 0) {
    AdviseHugePages();
  }
  return PopulateMapped(bytes(), path_);
}

Result<void> PopulateMapped(ByteSpan bytes, const std::string& path) {
#ifdef MADV_POPULATE_READ
  void* start = const_cast<std::byte*>(bytes.data());
  while (!bytes.empty() &&
         ::madvise(start, bytes.size(), MADV_POPULATE_READ) != 0) {
    if (errno == EINTR || errno == EAGAIN) continue;
    if (errno == EINVAL) break;  // a kernel before 5.14: pages come on touch
    // The system's way of saying that the disk did not deliver the page.
    const bool unreadable = errno == EFAULT || errno == EHWPOISON;
    return {unreadable ? Code::kCorrupt : Code::kIo,
            path + ": cannot be read: " + ErrnoText(errno)};
  }
#else
  static_cast<void>(bytes), static_cast<void>(path);
#endif
  return {};
}

void MappedFile::AdviseHugePages() const {
  hearth::AdviseHugePages(const_cast<std::byte*>(data_), size_);
}

Result<FileStamp> StatFile(const std::string& path) {
  struct stat st;
  if (::stat(path.c_str(), &st) != 0) return SystemError(errno, path);
  return StampOf(st);
}

Result<std::string> ReadTextFile(const std::string& path,
                                 std::size_t size_max) {
  UniqueFd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (fd.get() < 0) return SystemError(errno, path);
  std::string text;
  char buffer[1 << 16];
  while (true) {
    const ssize_t n = ::read(fd.get(), buffer, sizeof(buffer));
    if (n < 0) {
      if (errno == EINTR) continue;
      return SystemError(errno, path);
    }
    if (n == 0) return text;
    text.append(buffer, static_cast<std::size_t>(n));
    if (text.size() > size_max) {
      return {Code::kResourceFull,
              path + ": longer than " + std::to_string(size_max) + " bytes"};
    }
  }
}

Result<void> WriteFileAtomically(const std::string& path,
                                 std::span<const ByteSpan> parts) {
  const std::filesystem::path target(path);
  const std::string folder = target.parent_path().string();
  const std::string name = target.filename().string();
  if (name.empty() || name == "." || name == "..") {
    return {Code::kInvalidArgument, path + ": not a name for a file"};
  }
  HEARTH_ASSIGN(
      const Directory directory,
      Directory::Open(FileOps::System(), folder.empty() ? "." : folder));
  SweepTemporariesOf(directory, name);
  return directory.Write(name, parts);
}

Result<void> WriteFileAtomically(const std::string& path, ByteSpan bytes) {
  return WriteFileAtomically(path, std::span(&bytes, 1));
}

Result<void> MakeDirectories(const std::string& path) {
  std::string so_far;
  for (const auto& part : std::filesystem::path(path)) {
    so_far = (std::filesystem::path(so_far) / part).string();
    if (::mkdir(so_far.c_str(), 0700) != 0 && errno != EEXIST) {
      return SystemError(errno, so_far);
    }
  }
  struct stat st;
  if (::stat(path.c_str(), &st) != 0) return SystemError(errno, path);
  if (!S_ISDIR(st.st_mode)) {
    return {Code::kInvalidArgument, path + ": not a directory"};
  }
  return {};
}

}  // namespace hearth
