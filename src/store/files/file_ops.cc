#include "store/files/file_ops.h"

#include <fcntl.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cstdio>

namespace hearth {

int FileOps::OpenAt(int directory, const char* name, int flags, mode_t mode) {
  return ::openat(directory, name, flags, mode);
}

ssize_t FileOps::Read(int fd, void* to, std::size_t n) {
  return ::read(fd, to, n);
}

ssize_t FileOps::Write(int fd, const void* from, std::size_t n) {
  return ::write(fd, from, n);
}

int FileOps::Fsync(int fd) { return ::fsync(fd); }

void FileOps::StartWriteback(int fd) {
  (void)::sync_file_range(fd, 0, 0, SYNC_FILE_RANGE_WRITE);
}

int FileOps::RenameAt(int from_directory, const char* from, int to_directory,
                      const char* to) {
  return ::renameat(from_directory, from, to_directory, to);
}

int FileOps::UnlinkAt(int directory, const char* name, int flags) {
  return ::unlinkat(directory, name, flags);
}

int FileOps::MkdirAt(int directory, const char* name, mode_t mode) {
  return ::mkdirat(directory, name, mode);
}

int FileOps::FstatAt(int directory, const char* name, struct stat* st) {
  return ::fstatat(directory, name, st, AT_SYMLINK_NOFOLLOW);
}

int FileOps::TouchAt(int directory, const char* name, long long stamp_ns) {
  struct timespec times[2] = {{0, UTIME_OMIT}, {0, 0}};
  times[1].tv_sec = static_cast<time_t>(stamp_ns / 1'000'000'000);
  times[1].tv_nsec = static_cast<long>(stamp_ns % 1'000'000'000);
  return ::utimensat(directory, name, times, AT_SYMLINK_NOFOLLOW);
}

int FileOps::Truncate(int fd, off_t size) { return ::ftruncate(fd, size); }

long long FileOps::FreeBytes(int fd) {
  struct statvfs st;
  if (::fstatvfs(fd, &st) != 0) return -1;
  return static_cast<long long>(st.f_bavail) *
         static_cast<long long>(st.f_frsize);
}

FileOps& FileOps::System() {
  static FileOps ops;
  return ops;
}

}  // namespace hearth
