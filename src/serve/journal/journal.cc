#include "serve/journal/journal.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <unordered_map>
#include <vector>

#include "base/file.h"
#include "base/mutex.h"

namespace hearth::serve {
namespace {

struct Place {
  std::uint64_t at = 0;
  std::uint32_t length = 0;
};

// Without a directory: the newest answers of this process.
class MemoryJournal final : public Journal {
 public:
  explicit MemoryJournal(std::uint64_t budget) : budget_(budget) {}

  std::optional<SampledIds> Find(const Digest& key) override {
    const MutexLock lock(mutex_);
    const auto found = records_.find(key);
    if (found == records_.end()) return std::nullopt;
    return found->second;
  }
  void Put(const Digest& key, const SampledIds& sampled) override {
    const MutexLock lock(mutex_);
    bytes_ += sampled.ids.size() * sizeof(std::int32_t);
    // All of it goes at once: what is asked for next is almost always newer.
    if (bytes_ > budget_) {
      records_.clear();
      bytes_ = sampled.ids.size() * sizeof(std::int32_t);
    }
    records_[key] = sampled;
  }
  int n_records() const override {
    const MutexLock lock(mutex_);
    return static_cast<int>(records_.size());
  }

 private:
  const std::uint64_t budget_;
  mutable Mutex mutex_;
  std::unordered_map<Digest, SampledIds> records_ HEARTH_GUARDED_BY(mutex_);
  std::uint64_t bytes_ HEARTH_GUARDED_BY(mutex_) = 0;
};

class FileJournal final : public Journal {
 public:
  FileJournal(std::string path, std::shared_ptr<const Vault> vault,
              std::uint64_t budget)
      : path_(std::move(path)), vault_(std::move(vault)), budget_(budget) {}
  ~FileJournal() override { Close(); }

  Result<void> OpenFile() {
    const MutexLock lock(mutex_);
    return Reopen();
  }

  std::optional<SampledIds> Find(const Digest& key) override;
  void Put(const Digest& key, const SampledIds& sampled) override;
  int n_records() const override {
    const MutexLock lock(mutex_);
    return static_cast<int>(places_.size());
  }

 private:
  Result<void> Reopen() HEARTH_REQUIRES(mutex_);
  Result<void> Begin() HEARTH_REQUIRES(mutex_);
  void ReadNew() HEARTH_REQUIRES(mutex_);
  void FollowOthers() HEARTH_REQUIRES(mutex_);
  void Shorten() HEARTH_REQUIRES(mutex_);
  std::optional<ReadRecord> ReadAt(const Place& place) HEARTH_REQUIRES(mutex_);
  std::vector<std::byte> Bytes(std::uint64_t at, std::uint64_t n)
      HEARTH_REQUIRES(mutex_);
  std::uint64_t Size() const HEARTH_REQUIRES(mutex_);
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  const std::string path_;
  const std::shared_ptr<const Vault> vault_;
  const std::uint64_t budget_;
  mutable Mutex mutex_;
  int fd_ = -1;
  std::uint64_t read_ HEARTH_GUARDED_BY(mutex_) = 0;  // bytes that are known
  std::unordered_map<Digest, Place> places_ HEARTH_GUARDED_BY(mutex_);
};

// Keeps other processes from a change of what is already there.
class FileLock {
 public:
  explicit FileLock(int fd) : fd_(fd) { ::flock(fd_, LOCK_EX); }
  ~FileLock() { ::flock(fd_, LOCK_UN); }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  const int fd_;
};

std::uint64_t FileJournal::Size() const {
  struct stat status = {};
  return ::fstat(fd_, &status) == 0 ? static_cast<std::uint64_t>(status.st_size)
                                    : 0;
}

std::vector<std::byte> FileJournal::Bytes(std::uint64_t at, std::uint64_t n) {
  std::vector<std::byte> bytes(n);
  std::size_t got = 0;
  while (got < bytes.size()) {
    const ssize_t one = ::pread(fd_, bytes.data() + got, bytes.size() - got,
                                static_cast<off_t>(at + got));
    if (one <= 0) break;
    got += static_cast<std::size_t>(one);
  }
  bytes.resize(got);
  return bytes;
}

Result<void> FileJournal::Reopen() {
  Close();
  places_.clear();
  read_ = 0;
  fd_ = ::open(path_.c_str(),
               O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd_ < 0) {
    return {Code::kIo, "the journal " + path_ + ": " + ErrnoText(errno)};
  }
  struct stat status = {};
  if (::fstat(fd_, &status) != 0 || !S_ISREG(status.st_mode)) {
    Close();
    return {Code::kIo, "the journal " + path_ + " is no file"};
  }
  return Begin();
}

// What others, or a crash, left.
Result<void> FileJournal::Begin() {
  const FileLock lock(fd_);
  if (!IsJournalHeader(Bytes(0, kJournalHeaderBytes))) {
    // Not a journal, or one that never got its head: nothing of it is of use.
    const std::vector<std::byte> header = JournalHeader();
    if (::ftruncate(fd_, 0) != 0 ||
        ::write(fd_, header.data(), header.size()) !=
            static_cast<ssize_t>(header.size())) {
      return {Code::kIo, "the journal " + path_ + ": " + ErrnoText(errno)};
    }
  }
  read_ = kJournalHeaderBytes;
  ReadNew();
  // A torn record at the end would hide all that is written behind it. On an
  // error it stays, and so hides them.
  if (Size() > read_) (void)!::ftruncate(fd_, static_cast<off_t>(read_));
  return {};
}

void FileJournal::ReadNew() {
  const std::uint64_t size = Size();
  if (size <= read_) return;
  const std::vector<std::byte> bytes = Bytes(read_, size - read_);
  const std::uint64_t from = read_;
  std::vector<Place> found;
  read_ += WalkJournal(bytes, [&](std::size_t at, std::size_t length) {
    found.push_back({from + at, static_cast<std::uint32_t>(length)});
  });
  for (const Place& place : found) {
    const auto record = ReadJournalRecord(
        ByteSpan(bytes).subspan(place.at - from, place.length), vault_.get());
    if (!record.ok()) continue;  // damaged, or under another key
    places_[record->key] = place;
  }
}

// Others append, and at times put a shorter file in this one's place.
void FileJournal::FollowOthers() {
  struct stat named = {}, open = {};
  const bool same = ::stat(path_.c_str(), &named) == 0 &&
                    ::fstat(fd_, &open) == 0 && named.st_ino == open.st_ino &&
                    named.st_dev == open.st_dev;
  if (same) return ReadNew();
  if (!Reopen().ok()) Close();
}

std::optional<ReadRecord> FileJournal::ReadAt(const Place& place) {
  auto record = ReadJournalRecord(Bytes(place.at, place.length), vault_.get());
  if (!record.ok()) return std::nullopt;
  return *std::move(record);
}

std::optional<SampledIds> FileJournal::Find(const Digest& key) {
  const MutexLock lock(mutex_);
  if (fd_ < 0) return std::nullopt;
  if (!places_.contains(key)) FollowOthers();
  const auto found = places_.find(key);
  if (found == places_.end() || fd_ < 0) return std::nullopt;
  auto record = ReadAt(found->second);
  if (!record.has_value() || record->key != key) return std::nullopt;
  return std::move(record->sampled);
}

void FileJournal::Put(const Digest& key, const SampledIds& sampled) {
  const auto record = JournalRecord(key, sampled, vault_.get());
  const MutexLock lock(mutex_);
  if (!record.ok()) return;
  if (fd_ < 0) return;
  FollowOthers();
  if (fd_ < 0) return;
  {
    const FileLock alone(fd_);
    ReadNew();
    // One call appends all of it, or a full disk cuts it: then it goes again.
    const std::uint64_t before = Size();
    const ssize_t n = ::write(fd_, record->data(), record->size());
    if (n != static_cast<ssize_t>(record->size())) {
      (void)!::ftruncate(fd_, static_cast<off_t>(before));
      return;
    }
    places_[key] = {before, static_cast<std::uint32_t>(record->size())};
    read_ = before + record->size();
  }
  if (read_ > budget_) Shorten();
}

// Keeps the newer half of what fits.
void FileJournal::Shorten() {
  std::vector<Place> kept;
  for (const auto& one : places_) kept.push_back(one.second);
  std::sort(kept.begin(), kept.end(),
            [](const Place& a, const Place& b) { return a.at > b.at; });
  std::uint64_t bytes = 0;
  std::size_t n = 0;
  while (n < kept.size() && bytes + kept[n].length <= budget_ / 2) {
    bytes += kept[n++].length;
  }
  kept.resize(n);
  std::vector<std::vector<std::byte>> parts = {JournalHeader()};
  for (auto place = kept.rbegin(); place != kept.rend(); ++place) {
    parts.push_back(Bytes(place->at, place->length));
  }
  std::vector<ByteSpan> spans(parts.begin(), parts.end());
  if (!WriteFileAtomically(path_, spans).ok()) return;
  if (!Reopen().ok()) Close();
}

}  // namespace

Result<std::unique_ptr<Journal>> Journal::Open(
    const std::string& directory, std::shared_ptr<const Vault> vault,
    std::uint64_t budget) {
  if (directory.empty()) {
    return std::unique_ptr<Journal>(std::make_unique<MemoryJournal>(budget));
  }
  HEARTH_TRY(MakeDirectories(directory));
  auto journal = std::make_unique<FileJournal>(directory + "/journal",
                                               std::move(vault), budget);
  HEARTH_TRY(journal->OpenFile());
  return std::unique_ptr<Journal>(std::move(journal));
}

}  // namespace hearth::serve
