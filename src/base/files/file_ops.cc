#include "base/files/file_ops.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace hearth {
namespace {

// A limit on the length of files (RLIMIT_FSIZE) is an error like a full disk.
// The signal that comes with it, which would end the program, goes to the
// thread that writes: it is held back and taken away.
class NoFileSizeSignal {
 public:
  NoFileSizeSignal() {
    ::sigemptyset(&signal_);
    ::sigaddset(&signal_, SIGXFSZ);
    blocked_ = ::pthread_sigmask(SIG_BLOCK, &signal_, &before_) == 0;
  }
  ~NoFileSizeSignal() {
    if (!blocked_) return;
    const int number = errno;
    const struct timespec now = {};
    if (::sigismember(&before_, SIGXFSZ) == 0) {
      while (::sigtimedwait(&signal_, nullptr, &now) == SIGXFSZ) {
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    errno = number;
  }
  NoFileSizeSignal(const NoFileSizeSignal&) = delete;
  NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;

 private:
  sigset_t signal_ = {}, before_ = {};
  bool blocked_;
};

}  // namespace

int FileOps::OpenAt(int directory, const char* name, int flags, mode_t mode) {
  return ::openat(directory, name, flags, mode);
}

ssize_t FileOps::Read(int fd, void* to, std::size_t n) {
  return ::read(fd, to, n);
}

ssize_t FileOps::Write(int fd, const void* from, std::size_t n) {
  const NoFileSizeSignal guard;
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

int FileOps::Truncate(int fd, off_t size) {
  const NoFileSizeSignal guard;
  return ::ftruncate(fd, size);
}

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
