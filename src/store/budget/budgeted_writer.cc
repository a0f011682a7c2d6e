#include "store/budget/budgeted_writer.h"

#include <utility>

#include "store/directory/quarantine.h"

namespace hearth {
namespace {

std::uint64_t BytesOf(const FileToWrite& file) {
  std::uint64_t bytes = 0;
  for (const ByteSpan part : file.parts) bytes += part.size();
  return bytes;
}

Result<void> CheckGoingOn(const std::atomic<bool>* stop) {
  if (stop == nullptr || !*stop) return {};
  return {Code::kCancelled, "saving was given up"};
}

}  // namespace

Result<WrittenFiles> BudgetedWriter::Begin(std::span<const FileToWrite> files,
                                           const Protection& protection,
                                           Room room) const {
  WrittenFiles written;
  written.root_ = root_;
  written.limits_ = limits_;
  written.stop_ = stop_;
  std::uint64_t bytes = 0;
  for (const FileToWrite& file : files) {
    bytes += BytesOf(file);
    if (written.folders_.count(file.path.folder) > 0) continue;
    HEARTH_ASSIGN(Directory folder,
                  MakeFolder(*root_, file.path.folder, written.parents_));
    written.folders_.emplace(file.path.folder, std::move(folder));
  }
  {
    HEARTH_ASSIGN(SpaceLock lock, SpaceLock::Take(*root_, limits_, stop_));
    HEARTH_TRY(lock.MakeRoom(*root_, bytes, limits_, protection,
                             /*recount=*/false, room));
    for (const FileToWrite& file : files) {
      HEARTH_ASSIGN(PendingFile made,
                    written.folders_.at(file.path.folder)
                        .Create(file.path.name, BytesOf(file)));
      written.files_.push_back(std::move(made));
      written.durable_.push_back(file.durability == Durability::kDurable);
    }
  }
  for (std::size_t i = 0; i < files.size(); ++i) {
    HEARTH_TRY(CheckGoingOn(stop_));
    HEARTH_TRY(written.files_[i].Fill(files[i].parts));
  }
  return written;
}

// A directory in the file's place is set aside.
Result<void> WrittenFiles::Publish(PendingFile& file) const {
  auto published = file.Publish();
  if (published.ok()) return published;
  const auto there = file.folder().Stat(file.name());
  if (there.ok() && there->is_directory &&
      SetAside(*root_, file.folder(), file.name())) {
    published = file.Publish();
  }
  return published;
}

Result<void> WrittenFiles::Finish() {
  bool any_durable = false;
  for (std::size_t i = 0; i < files_.size(); ++i) {
    if (!durable_[i]) continue;
    any_durable = true;
    HEARTH_TRY(CheckGoingOn(stop_));
    HEARTH_TRY(files_[i].Flush());
  }
  {
    // Under the lock, so that a scan does not miss a file between two names.
    HEARTH_ASSIGN(const SpaceLock lock,
                  SpaceLock::Take(*root_, limits_, stop_));
    for (PendingFile& file : files_) HEARTH_TRY(Publish(file));
  }
  if (!any_durable) return {};
  // On a slow disk the names take as long as the files: giving up ends this,
  // too.
  for (const auto& [name, folder] : folders_) {
    HEARTH_TRY(CheckGoingOn(stop_));
    HEARTH_TRY(folder.Sync());
  }
  for (const Directory& parent : parents_) {
    HEARTH_TRY(CheckGoingOn(stop_));
    HEARTH_TRY(parent.Sync());
  }
  return {};
}

Result<void> BudgetedWriter::Write(std::span<const FileToWrite> files,
                                   const Protection& protection,
                                   Room room) const {
  HEARTH_ASSIGN(WrittenFiles written, Begin(files, protection, room));
  return written.Finish();
}

}  // namespace hearth
