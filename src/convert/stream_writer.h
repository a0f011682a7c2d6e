// A model file that is written in pieces under the rule of base/files/output.h,
// with progress and a way to stop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/files/output.h"
#include "hearth/convert.h"
#include "hearth/result.h"

namespace hearth {

class StreamWriter {
 public:
  // `total`: bytes that will be appended. `inputs`: files the result is made
  // from, which it must not replace.
  static Result<StreamWriter> Create(const std::string& path,
                                     const WriteOptions& options,
                                     std::vector<std::string> inputs,
                                     std::uint64_t total);

  // kCancelled when the caller wants no more.
  Result<void> Append(ByteSpan bytes);
  Result<void> Commit();

 private:
  StreamWriter(OutputFile file, const WriteOptions& options,
               std::uint64_t total)
      : file_(std::move(file)), options_(options), total_(total) {}

  OutputFile file_;
  WriteOptions options_;
  std::uint64_t done_ = 0, total_;
};

}  // namespace hearth
