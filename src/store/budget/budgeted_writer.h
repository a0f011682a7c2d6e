// The only way in which files come into a store. Room is made before anything
// is written, every file has its full length from the start, and a name never
// stands for bytes that are not durable:
//
//   room for all, files made   (under the lock)
//   all written, all flushed
//   all named                  (under the lock)
//   folders flushed
//
// so the disk budget holds at every instant, unfinished files included, and a
// crash leaves each file whole or not at all. Nothing slow is done under the
// lock.
//
// Errors   kResourceFull: no room, or a full disk. kCancelled: `stop` was set.
//          kIo. After an error none of the files is there, or, when the naming
//          was interrupted, the first few.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/files/directory.h"
#include "hearth/result.h"
#include "store/budget/space.h"
#include "store/directory/layout.h"

namespace hearth {

struct FileToWrite {
  StorePath path;
  std::vector<ByteSpan> parts;  // as they go to the disk
  Durability durability = Durability::kDurable;
};

class BudgetedWriter;

// Files that are written but not durable and without their names. Destroyed
// before Finish, they leave nothing.
class WrittenFiles {
 public:
  Result<MappedFile> Map(std::size_t index) const {
    return files_[index].Map();
  }
  Result<void> Finish();

 private:
  friend class BudgetedWriter;
  Result<void> Publish(PendingFile& file) const;

  std::shared_ptr<const Directory> root_;
  SpaceLimits limits_;
  const std::atomic<bool>* stop_ = nullptr;
  std::map<std::string, Directory> folders_;  // outlive the files in them
  std::vector<Directory> parents_;            // to be flushed
  std::vector<bool> durable_;
  std::vector<PendingFile> files_;
};

class BudgetedWriter {
 public:
  // `stop` outlives the writer and what it wrote; null: never given up.
  BudgetedWriter(Directory root, const SpaceLimits& limits,
                 const std::atomic<bool>* stop = nullptr)
      : root_(std::make_shared<const Directory>(std::move(root))),
        limits_(limits),
        stop_(stop) {}

  const Directory& root() const { return *root_; }

  Result<void> Write(std::span<const FileToWrite> files,
                     const Protection& protection,
                     Room room = Room::kEvict) const;
  // The first half of Write; Finish is the second.
  Result<WrittenFiles> Begin(std::span<const FileToWrite> files,
                             const Protection& protection,
                             Room room = Room::kEvict) const;

 private:
  std::shared_ptr<const Directory> root_;
  SpaceLimits limits_;
  const std::atomic<bool>* stop_;
};

}  // namespace hearth
