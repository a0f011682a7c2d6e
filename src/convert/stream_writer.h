// A file that is written in pieces and appears whole: for files too large to
// build in memory (WriteFileAtomically serves the others).
#pragma once

#include <string>

#include "base/bytes.h"
#include "hearth/result.h"

namespace hearth {

class StreamWriter {
 public:
  // Creates a temporary file beside `path`.
  static Result<StreamWriter> Create(const std::string& path);
  // Removes the temporary file unless Commit succeeded.
  ~StreamWriter();
  StreamWriter(StreamWriter&& other) noexcept;
  StreamWriter& operator=(StreamWriter&&) = delete;

  Result<void> Append(ByteSpan bytes);
  // Flushes to the disk, renames over `path`, flushes the directory.
  Result<void> Commit();

 private:
  StreamWriter() = default;
  Error OsError(const std::string& what) const;

  int fd_ = -1;
  std::string path_, temporary_;
};

}  // namespace hearth
