#include "convert/stream_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "base/file.h"

namespace hearth {

Error StreamWriter::OsError(const std::string& what) const {
  const int number = errno;
  const Code code = number == ENOENT || number == ENOTDIR  ? Code::kNotFound
                    : number == ENOSPC || number == EDQUOT ? Code::kResourceFull
                                                           : Code::kIo;
  return {code, what + ": " + ErrnoText(number)};
}

Result<StreamWriter> StreamWriter::Create(const std::string& path) {
  static std::atomic<unsigned> counter{0};
  StreamWriter writer;
  writer.path_ = path;
  writer.temporary_ = path + ".tmp." + std::to_string(::getpid()) + "." +
                      std::to_string(counter.fetch_add(1));
  // Models hold no secrets: the usual mode, narrowed by the umask.
  writer.fd_ = ::open(writer.temporary_.c_str(),
                      O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (writer.fd_ < 0) return writer.OsError(path);
  return writer;
}

StreamWriter::StreamWriter(StreamWriter&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)) {}

StreamWriter::~StreamWriter() {
  if (fd_ < 0) return;
  ::close(fd_);
  ::unlink(temporary_.c_str());
}

Result<void> StreamWriter::Append(ByteSpan bytes) {
  while (!bytes.empty()) {
    const ssize_t n = ::write(fd_, bytes.data(), bytes.size());
    if (n < 0) {
      if (errno == EINTR) continue;
      return OsError(path_);
    }
    bytes = bytes.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<void> StreamWriter::Commit() {
  if (::fsync(fd_) != 0) return OsError(path_);
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) return OsError(path_);
  ::close(std::exchange(fd_, -1));
  std::string parent = std::filesystem::path(path_).parent_path().string();
  if (parent.empty()) parent = ".";
  const int directory =
      ::open(parent.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return OsError(parent);
  const bool flushed = ::fsync(directory) == 0;
  const Error error = OsError(parent);
  ::close(directory);
  if (!flushed) return error;
  return {};
}

}  // namespace hearth
