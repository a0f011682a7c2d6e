// One line of JSON a request: figures, never text.
#pragma once

#include <memory>
#include <string>

#include "hearth/result.h"

namespace hearth::serve {

class RequestLog {
 public:
  // `path`: a file, which at 16 MiB makes place for a new one; four older ones
  // are kept. Empty: standard error. kIo when it cannot be written.
  static Result<std::unique_ptr<RequestLog>> Open(const std::string& path);
  virtual ~RequestLog() = default;
  // `json`: one line without its end. Any thread; returns at once, and leaves
  // lines out rather than wait for a disk.
  virtual void Write(const std::string& json) = 0;
};

}  // namespace hearth::serve
