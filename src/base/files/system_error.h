// What the system's refusals mean, in one place, and a descriptor that closes
// itself.
#pragma once

#include <string>
#include <utility>

#include "base/bytes.h"
#include "hearth/result.h"

namespace hearth {

// `what`: the path, for the message.
//   kNotFound          no such name, or a part of the path is no directory
//   kInvalidArgument   a link where none is followed
//   kResourceFull      disk, quota, or a limit on the length of files
//   kIo                anything else
Error SystemError(int error_number, const std::string& what);

// The name exists and is a link, directory, device or pipe where another kind
// was expected.
Error WrongKindError(const std::string& what);

// Reads pages of a mapped file into memory and maps them now, as
// MappedFile::Populate does for all of it.
Result<void> PopulateMapped(ByteSpan bytes, const std::string& path);

class UniqueFd {
 public:
  explicit UniqueFd(int fd = -1) : fd_(fd) {}
  ~UniqueFd();
  UniqueFd(UniqueFd&& other) noexcept : fd_(other.release()) {}
  UniqueFd& operator=(UniqueFd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

}  // namespace hearth
