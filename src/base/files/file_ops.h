// The system calls the store writes with, as one table, so that a test can make
// any of them fail at any step. Names and results are those of the system:
// -1 and errno on failure.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>

namespace hearth {

// Threads  every call may be made from any thread.
class FileOps {
 public:
  virtual ~FileOps() = default;
  virtual int OpenAt(int directory, const char* name, int flags, mode_t mode);
  virtual ssize_t Read(int fd, void* to, std::size_t n);
  virtual ssize_t Write(int fd, const void* from, std::size_t n);
  virtual int Fsync(int fd);
  // A hint: begin to write out what Fsync will wait for.
  virtual void StartWriteback(int fd);
  virtual int RenameAt(int from_directory, const char* from, int to_directory,
                       const char* to);
  virtual int UnlinkAt(int directory, const char* name, int flags);
  virtual int MkdirAt(int directory, const char* name, mode_t mode);
  virtual int FstatAt(int directory, const char* name, struct stat* st);
  // Sets the last-use stamp (mtime) of `name`, in ns since 1970.
  virtual int TouchAt(int directory, const char* name, long long stamp_ns);
  virtual int Truncate(int fd, off_t size);
  // Bytes that an unprivileged writer may still fill; -1 when unknown.
  virtual long long FreeBytes(int fd);

  // The real ones.
  static FileOps& System();
};

}  // namespace hearth
