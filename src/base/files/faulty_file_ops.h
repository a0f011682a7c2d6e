// A file layer for tests that fails on demand. Steps are the calls that change
// something, in the order they come; the n-th is told apart from all others.
#pragma once

#include <fcntl.h>

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "base/files/file_ops.h"

namespace hearth {

class FaultyFileOps : public FileOps {
 public:
  enum class Mode {
    kNever,
    kOnce,    // step `at` fails, later ones work
    kForEver  // step `at` and all later ones fail, as after a crash
  };

  void FailAt(std::int64_t at, Mode mode, int error_number) {
    at_ = at;
    mode_ = mode;
    error_ = error_number;
    n_steps_ = 0;
  }
  std::int64_t n_steps() const { return n_steps_; }
  // Reads and writes move at most this many bytes per call; 0: no limit.
  void set_bytes_per_call_max(std::size_t n) { bytes_per_call_max_ = n; }
  void set_free_bytes(long long n) { free_bytes_ = n; }

  int OpenAt(int directory, const char* name, int flags, mode_t mode) override {
    if ((flags & O_CREAT) != 0 && Fails()) return -1;
    return FileOps::OpenAt(directory, name, flags, mode);
  }
  ssize_t Read(int fd, void* to, std::size_t n) override {
    return FileOps::Read(fd, to, Limited(n));
  }
  ssize_t Write(int fd, const void* from, std::size_t n) override {
    if (Fails()) {
      // Half of it got through: what a full disk leaves behind.
      (void)FileOps::Write(fd, from, n / 2);
      return -1;
    }
    return FileOps::Write(fd, from, Limited(n));
  }
  // Not passed on: tests of the order of steps need no real flush.
  int Fsync(int) override { return Fails() ? -1 : 0; }
  void StartWriteback(int) override {}
  int RenameAt(int from_directory, const char* from, int to_directory,
               const char* to) override {
    if (Fails()) return -1;
    return FileOps::RenameAt(from_directory, from, to_directory, to);
  }
  int UnlinkAt(int directory, const char* name, int flags) override {
    if (Fails()) return -1;
    return FileOps::UnlinkAt(directory, name, flags);
  }
  int MkdirAt(int directory, const char* name, mode_t mode) override {
    if (Fails()) return -1;
    return FileOps::MkdirAt(directory, name, mode);
  }
  int TouchAt(int directory, const char* name, long long stamp_ns) override {
    if (Fails()) return -1;
    return FileOps::TouchAt(directory, name, stamp_ns);
  }
  int Truncate(int fd, off_t size) override {
    if (Fails()) return -1;
    return FileOps::Truncate(fd, size);
  }
  long long FreeBytes(int fd) override {
    return free_bytes_ >= 0 ? free_bytes_.load() : FileOps::FreeBytes(fd);
  }

 private:
  bool Fails() {
    const std::int64_t step = n_steps_++;
    const bool fails = (mode_ == Mode::kOnce && step == at_) ||
                       (mode_ == Mode::kForEver && step >= at_);
    if (fails) errno = error_;
    return fails;
  }
  std::size_t Limited(std::size_t n) const {
    return bytes_per_call_max_ > 0 && n > bytes_per_call_max_
               ? bytes_per_call_max_
               : n;
  }

  Mode mode_ = Mode::kNever;
  std::int64_t at_ = 0;
  int error_ = EIO;
  std::atomic<std::int64_t> n_steps_{0};
  std::size_t bytes_per_call_max_ = 0;
  std::atomic<long long> free_bytes_{-1};
};

}  // namespace hearth
