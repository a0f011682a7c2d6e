#include "convert/stream_writer.h"

#include <algorithm>
#include <utility>

namespace hearth {

Result<StreamWriter> StreamWriter::Create(const std::string& path,
                                          const WriteOptions& options,
                                          std::vector<std::string> inputs,
                                          std::uint64_t total) {
  HEARTH_ASSIGN(OutputFile file,
                OutputFile::Create(path, {.replace = options.replace,
                                          .inputs = std::move(inputs)}));
  return StreamWriter(std::move(file), options, total);
}

Result<void> StreamWriter::Append(ByteSpan bytes) {
  // A large tensor is one call here, and the caller may want to stop in it.
  constexpr std::size_t kPiece = std::size_t{8} << 20;
  do {
    const std::size_t n = std::min(bytes.size(), kPiece);
    HEARTH_TRY(file_.Append(bytes.first(n)));
    bytes = bytes.subspan(n);
    done_ += n;
    if (options_.progress && !options_.progress(done_, total_)) {
      return {Code::kCancelled, "stopped; nothing was written"};
    }
  } while (!bytes.empty());
  return {};
}

Result<void> StreamWriter::Commit() { return file_.Commit(); }

}  // namespace hearth
