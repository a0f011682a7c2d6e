// Results that a user asked for by name: a model, logits, a conversation. One
// rule for all of them:
//
//   - A new regular file appears whole (temporary beside it, flushed, renamed)
//     or not at all; its mode is what the umask leaves of 0666.
//   - An existing one is replaced only when the caller says so, or when it is
//     already the kind of file that is about to be written.
//   - A file that is read for the result is never its target, whatever the two
//     are called.
//   - Symbolic links are followed: the file behind the link is replaced.
//   - Devices, pipes and sockets are written through; "-" is standard output.
//
// Files of the store have another rule (base/files/directory.h).
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "hearth/result.h"

namespace hearth {

struct OutputRule {
  bool replace = false;  // an existing file may go
  // Whether an existing regular file is of the kind that is about to be
  // written, and so may go without `replace`. Null: none is.
  std::function<bool(const std::string& path)> same_kind = {};
  std::vector<std::string> inputs = {};  // files the result is made from
};

// Whether `path` can be written under the rule, without touching it: for
// before the work. kInvalidArgument: it exists, is a directory or one of the
// inputs; kNotFound: no folder to put it into; kIo: not writable.
Result<void> CheckOutput(const std::string& path, const OutputRule& rule);

// A result that is written in pieces. Destroyed without Commit it leaves what
// was there before, but for what a device or pipe has taken.
class OutputFile {
 public:
  // CheckOutput, and the beginning of the file.
  static Result<OutputFile> Create(const std::string& path,
                                   const OutputRule& rule);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  Result<void> Append(ByteSpan bytes);
  // The file is complete, durable and has its name.
  Result<void> Commit();

 private:
  OutputFile() = default;

  int fd_ = -1;
  bool replace_ = false;
  std::string path_;       // as the caller named it, for messages
  std::string target_;     // behind all links
  std::string temporary_;  // empty: written through
};

// All of a result at once.
Result<void> WriteOutput(const std::string& path, const OutputRule& rule,
                         std::span<const ByteSpan> parts);
Result<void> WriteOutput(const std::string& path, const OutputRule& rule,
                         std::string_view text);

// A result that is a directory of files, which appear in it when all of them
// are complete. An existing directory must be empty, or `replace` given;
// then files take the place of their namesakes and those of its files that
// `belongs` names are removed: they would be read with the new ones.
class OutputDirectory {
 public:
  using Belongs = std::function<bool(const std::string& name)>;
  static Result<void> Check(const std::string& path, bool replace);
  static Result<OutputDirectory> Create(const std::string& path, bool replace,
                                        Belongs belongs);
  ~OutputDirectory();
  OutputDirectory(OutputDirectory&& other) noexcept;
  OutputDirectory& operator=(OutputDirectory&&) = delete;

  // Where the files are to be written until Commit.
  const std::string& path() const { return temporary_; }
  Result<void> Commit();

 private:
  OutputDirectory() = default;
  Result<void> MoveInto(const std::string& target) const;

  Belongs belongs_;
  bool exists_ = false;
  std::string target_;
  std::string temporary_;  // empty: moved from or committed
};

}  // namespace hearth
