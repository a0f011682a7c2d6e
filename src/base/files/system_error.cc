#include "base/files/system_error.h"

#include <unistd.h>

#include <cerrno>

#include "base/file.h"

namespace hearth {

Error SystemError(int error_number, const std::string& what) {
  switch (error_number) {
    case ENOENT:
    case ENOTDIR:
      return {Code::kNotFound, what + ": " + ErrnoText(error_number)};
    case ELOOP:
      return WrongKindError(what);
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return {Code::kResourceFull, what + ": " + ErrnoText(error_number)};
    default:
      return {Code::kIo, what + ": " + ErrnoText(error_number)};
  }
}

Error WrongKindError(const std::string& what) {
  return {Code::kInvalidArgument,
          what + ": a link or another kind of file than expected"};
}

UniqueFd::~UniqueFd() {
  if (fd_ >= 0) ::close(fd_);
}

}  // namespace hearth
