#include "serve/wire/store/response_store.h"

#include <algorithm>
#include <span>
#include <variant>
#include <vector>

#include "serve/wire/store/image.h"

namespace hearth::serve {
namespace {

// The name of an entry, in memory and on disk: with a key, who does not have it
// cannot tell whether an id that he knows is kept.
std::string KeyOf(std::string_view kind, const std::string& id,
                  const std::string& space, const Vault* vault) {
  Sha256 hash;
  hash.Field("hearth response store").Field(kind).Field(space).Field(id);
  if (vault != nullptr) hash.Field(vault->name_key());
  return ToHex(hash.Finish(), 16);
}

template <typename T>
std::optional<T> Decode(const std::shared_ptr<const std::string>& image,
                        const std::string& id, const std::string& space,
                        std::int64_t oldest_s) {
  if (image == nullptr) return std::nullopt;
  auto read = ReadImage(AsBytes(*image), id);
  if (!read.ok()) return std::nullopt;
  T* entry = std::get_if<T>(&*read);
  if (entry == nullptr || entry->id != id || entry->space != space ||
      entry->created_s < oldest_s) {
    return std::nullopt;
  }
  return std::move(*entry);
}

}  // namespace

ResponseStore::ResponseStore(ResponseStoreOptions options)
    : options_(std::move(options)) {}

Result<std::unique_ptr<ResponseStore>> ResponseStore::Open(
    ResponseStoreOptions options, FileOps& ops) {
  std::unique_ptr<ResponseStore> store(new ResponseStore(std::move(options)));
  if (store->options_.directory.empty()) return store;
  HEARTH_ASSIGN(const Directory root,
                Directory::Open(ops, store->options_.directory,
                                store->options_.vault.get()));
  HEARTH_ASSIGN(Directory folder, root.MakeSub("responses"));
  HEARTH_ASSIGN(const std::vector<DirectoryEntry> entries, folder.List());
  for (const DirectoryEntry& entry : entries) {
    if (!entry.is_file) continue;
    store->files_[entry.name] = {entry.size, entry.mtime_ns};
    store->disk_bytes_ += entry.size;
  }
  store->directory_.emplace(std::move(folder));
  store->MakeRoom(0, NowNs() / 1'000'000'000);
  return store;
}

Result<void> ResponseStore::Put(const StoredResponse& response,
                                std::int64_t now_s) {
  return PutImage(KeyOf("response", response.id, response.space, vault()),
                  ImageOf(response), now_s);
}

Result<void> ResponseStore::Put(const StoredPrompt& prompt,
                                std::int64_t now_s) {
  return PutImage(KeyOf("prompt", prompt.id, prompt.space, vault()),
                  ImageOf(prompt), now_s);
}

Result<void> ResponseStore::PutImage(const std::string& key, std::string image,
                                     std::int64_t now_s) {
  if (image.size() > kImageBytesMax) {
    return {Code::kResourceFull, "a response of " +
                                     std::to_string(image.size()) +
                                     " bytes is too long to be kept"};
  }
  const auto shared = std::make_shared<const std::string>(std::move(image));
  const std::lock_guard lock(mutex_);
  Remember(key, shared);
  if (!directory_) return {};
  MakeRoom(shared->size(), now_s);
  return Write(key, *shared);
}

Result<void> ResponseStore::Write(const std::string& key,
                                  const std::string& image) {
  const ByteSpan plain = AsBytes(image);
  std::vector<std::byte> buffer;
  HEARTH_ASSIGN(const std::vector<ByteSpan> parts,
                ForDisk(vault(), std::span(&plain, 1), buffer));
  // Not flushed: what a power cut takes is found to be damaged, and is gone.
  HEARTH_TRY(directory_->Write(key, parts, Durability::kCached));
  std::uint64_t bytes = 0;
  for (const ByteSpan part : parts) bytes += part.size();
  OnDisk& file = files_[key];
  disk_bytes_ += bytes - file.bytes;
  file = {bytes, NowNs()};
  return {};
}

// REQUIRES: the lock, or nobody else yet.
void ResponseStore::MakeRoom(std::uint64_t bytes, std::int64_t now_s) {
  const std::int64_t oldest_ns = (now_s - options_.age_s) * 1'000'000'000;
  while (!files_.empty()) {
    const auto oldest = std::min_element(
        files_.begin(), files_.end(), [](const auto& a, const auto& b) {
          return a.second.mtime_ns < b.second.mtime_ns;
        });
    if (oldest->second.mtime_ns >= oldest_ns &&
        disk_bytes_ + bytes <= options_.disk_bytes) {
      return;
    }
    (void)directory_->Remove(oldest->first);  // another process may have
    disk_bytes_ -= oldest->second.bytes;
    files_.erase(oldest);
  }
}

// REQUIRES: the lock.
void ResponseStore::Remember(const std::string& key,
                             std::shared_ptr<const std::string> image) const {
  if (const auto old = by_key_.find(key); old != by_key_.end()) {
    memory_bytes_ -= old->second->image->size();
    entries_.erase(old->second);
    by_key_.erase(old);
  }
  if (image->size() > options_.memory_bytes) return;
  memory_bytes_ += image->size();
  entries_.push_front({key, std::move(image)});
  by_key_[key] = entries_.begin();
  while (memory_bytes_ > options_.memory_bytes) {
    memory_bytes_ -= entries_.back().image->size();
    by_key_.erase(entries_.back().key);
    entries_.pop_back();
  }
}

std::shared_ptr<const std::string> ResponseStore::FindImage(
    const std::string& key) const {
  {
    const std::lock_guard lock(mutex_);
    const auto found = by_key_.find(key);
    if (found != by_key_.end()) {
      entries_.splice(entries_.begin(), entries_, found->second);
      return found->second->image;
    }
  }
  if (!directory_) return nullptr;
  const auto bytes = ReadStored(*directory_, key, kImageBytesMax);
  if (!bytes.ok()) return nullptr;
  auto image = std::make_shared<const std::string>(AsText(bytes->bytes));
  const std::lock_guard lock(mutex_);
  Remember(key, image);
  return image;
}

std::optional<StoredResponse> ResponseStore::Find(const std::string& id,
                                                  const std::string& space,
                                                  std::int64_t now_s) const {
  return Decode<StoredResponse>(
      FindImage(KeyOf("response", id, space, vault())), id, space,
      now_s - options_.age_s);
}

std::optional<StoredPrompt> ResponseStore::FindPrompt(
    const std::string& id, const std::string& space, std::int64_t now_s) const {
  return Decode<StoredPrompt>(FindImage(KeyOf("prompt", id, space, vault())),
                              id, space, now_s - options_.age_s);
}

bool ResponseStore::Delete(const std::string& id, const std::string& space) {
  const std::string key = KeyOf("response", id, space, vault());
  const bool found = FindImage(key) != nullptr;
  const std::lock_guard lock(mutex_);
  if (const auto held = by_key_.find(key); held != by_key_.end()) {
    memory_bytes_ -= held->second->image->size();
    entries_.erase(held->second);
    by_key_.erase(held);
  }
  if (directory_) (void)directory_->Remove(key);
  if (const auto file = files_.find(key); file != files_.end()) {
    disk_bytes_ -= file->second.bytes;
    files_.erase(file);
  }
  return found;
}

std::uint64_t ResponseStore::memory_bytes() const {
  const std::lock_guard lock(mutex_);
  return memory_bytes_;
}

std::uint64_t ResponseStore::disk_bytes() const {
  const std::lock_guard lock(mutex_);
  return disk_bytes_;
}

}  // namespace hearth::serve
