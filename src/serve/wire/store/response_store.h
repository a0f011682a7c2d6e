// Responses and prompts that later requests name: previous_response_id,
// item_reference, GET /v1/responses/{id}, diagnostics.previous_message_id.
// In memory, the least recently used go first; with a directory also on disk,
// where they outlive the process. File format: docs/formats/response.md.
//
// Threads  every call may be made from any thread. Put writes a file: not for
//          a thread that must not wait for a disk.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/files/directory.h"
#include "base/files/vault.h"
#include "serve/wire/stored.h"

namespace hearth::serve {

struct ResponseStoreOptions {
  std::string directory = {};  // made when missing; empty: memory alone
  std::shared_ptr<const Vault> vault = {};
  std::uint64_t memory_bytes = 64ull << 20;
  std::uint64_t disk_bytes = 256ull << 20;
  std::int64_t age_s = 30 * 86400;
};

class ResponseStore {
 public:
  // kIo and the like when the directory cannot be made or read.
  static Result<std::unique_ptr<ResponseStore>> Open(
      ResponseStoreOptions options, FileOps& ops = FileOps::System());

  // An error says that it is in memory alone.
  Result<void> Put(const StoredResponse& response, std::int64_t now_s);
  Result<void> Put(const StoredPrompt& prompt, std::int64_t now_s);
  // Nothing: unknown, gone, too old, of another space, or damaged.
  std::optional<StoredResponse> Find(const std::string& id,
                                     const std::string& space,
                                     std::int64_t now_s) const;
  std::optional<StoredPrompt> FindPrompt(const std::string& id,
                                         const std::string& space,
                                         std::int64_t now_s) const;
  bool Delete(const std::string& id, const std::string& space);
  const Vault* vault() const { return options_.vault.get(); }

  std::uint64_t memory_bytes() const;
  std::uint64_t disk_bytes() const;

 private:
  struct Entry {
    std::string key;
    std::shared_ptr<const std::string> image;
  };
  struct OnDisk {
    std::uint64_t bytes = 0;
    std::int64_t mtime_ns = 0;
  };

  explicit ResponseStore(ResponseStoreOptions options);
  Result<void> PutImage(const std::string& key, std::string image,
                        std::int64_t now_s);
  std::shared_ptr<const std::string> FindImage(const std::string& key) const;
  void Remember(const std::string& key,
                std::shared_ptr<const std::string> image) const;
  Result<void> Write(const std::string& key, const std::string& image);
  void MakeRoom(std::uint64_t bytes, std::int64_t now_s);

  const ResponseStoreOptions options_;
  mutable std::mutex mutex_;
  mutable std::list<Entry> entries_;  // newest first
  mutable std::map<std::string, std::list<Entry>::iterator> by_key_;
  mutable std::uint64_t memory_bytes_ = 0;
  std::optional<Directory> directory_;
  std::map<std::string, OnDisk> files_;
  std::uint64_t disk_bytes_ = 0;
};

}  // namespace hearth::serve
