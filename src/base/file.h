// Files: mapping, reading, and writing so that a crash leaves the whole new
// file or none of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "hearth/result.h"

namespace hearth {

// What tells one version of a file from another without reading it.
struct FileStamp {
  std::uint64_t device = 0, inode = 0, size = 0;
  std::int64_t mtime_ns = 0, ctime_ns = 0;
  friend bool operator==(const FileStamp&, const FileStamp&) = default;
};

// A whole file mapped read-only. Move-only; the address never changes.
class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  // kNotFound when there is no such file, kIo otherwise. A directory, device or
  // pipe is kInvalidArgument. With `follow_links` false a symbolic link at
  // `path` is kInvalidArgument.
  static Result<MappedFile> Open(const std::string& path,
                                 bool follow_links = true);
  // Maps an open file; the descriptor stays the caller's. `path` is for
  // messages.
  static Result<MappedFile> FromDescriptor(int fd, const std::string& path);

  ByteSpan bytes() const { return {data_, size_}; }
  const FileStamp& stamp() const { return stamp_; }
  const std::string& path() const { return path_; }
  // Reads the whole file into memory and maps every page now. kCorrupt when the
  // disk cannot deliver a page: without this call the first touch of that page
  // would end the process (SIGBUS). kIo: no memory, and the like.
  Result<void> Populate() const;
  // A file that comes from the disk now is kept in large pages, which later
  // programs map at once instead of 4 KiB at a time. A hint; never fails.
  void AdviseHugePages() const;

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  FileStamp stamp_;
  std::string path_;
};

Result<FileStamp> StatFile(const std::string& path);

// The whole file as text. kResourceFull when it is longer than `size_max`.
Result<std::string> ReadTextFile(const std::string& path,
                                 std::size_t size_max = std::size_t{1} << 30);

// Writes `parts` one after the other to a temporary file beside `path`, flushes
// it to the disk, renames it over `path` and flushes the directory. File mode
// 0600. On an error nothing of `path` has changed and no temporary file stays.
Result<void> WriteFileAtomically(const std::string& path,
                                 std::span<const ByteSpan> parts);
Result<void> WriteFileAtomically(const std::string& path, ByteSpan bytes);

// Makes the directory and its parents with mode 0700; fine if it exists.
Result<void> MakeDirectories(const std::string& path);

// Asks for pages of 2 MiB in [start, start + size), which is page-aligned:
// about half of the time that a core takes to read 4 KiB from memory goes into
// finding the page, in a virtual machine at least. A hint; never fails.
void AdviseHugePages(void* start, std::size_t size);

// The operating system's words for `error_number`.
std::string ErrnoText(int error_number);

}  // namespace hearth
