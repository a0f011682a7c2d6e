// Remembers the content digest of a model whose files have not changed since it
// was computed, so that a launch need not read the whole model.
// File format: docs/formats/store.md.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "base/file.h"
#include "base/hash.h"
#include "hearth/result.h"

namespace hearth {

class FileOps;

class ModelMemo {
 public:
  // `root`: the store's; need not exist yet. `file_ops`: for tests.
  explicit ModelMemo(std::string root, FileOps* file_ops = nullptr);

  // The digest saved for exactly these stamps, in this order. Anything wrong
  // with the memo is simply no memo.
  std::optional<Digest> Find(std::span<const FileStamp> stamps) const;

  // `stamps` must have been taken before the content was read. Nothing is saved
  // (and that is no error) while the newest stamp is younger than two seconds:
  // a second change within the clock's step would leave the same stamp.
  Result<void> Save(std::span<const FileStamp> stamps,
                    const Digest& digest) const;

 private:
  std::string root_;
  FileOps& ops_;
};

}  // namespace hearth
