// Remembers the content digest of a model whose files have not changed since it
// was computed, so that a launch need not read the whole model.
// File format: docs/formats/store.md.
#pragma once

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/hash.h"
#include "hearth/result.h"
#include "store/memo/side_files.h"

namespace hearth {

// The file for a digest and its stamps, and back: nothing unless it is the one
// file for these stamps.
std::vector<std::byte> EncodeModelMemo(std::span<const FileStamp> stamps,
                                       const Digest& digest);
std::optional<Digest> ParseModelMemo(ByteSpan file,
                                     std::span<const FileStamp> stamps);

class ModelMemo {
 public:
  explicit ModelMemo(SideFiles files) : files_(std::move(files)) {}

  // The digest saved for exactly these stamps, in this order. Anything wrong
  // with the memo is simply no memo.
  std::optional<Digest> Find(std::span<const FileStamp> stamps) const;

  // `stamps` must have been taken before the content was read. Nothing is saved
  // (and that is no error) while the newest stamp is younger than two seconds:
  // a second change within the clock's step would leave the same stamp.
  Result<void> Save(std::span<const FileStamp> stamps,
                    const Digest& digest) const;

 private:
  SideFiles files_;
};

}  // namespace hearth
