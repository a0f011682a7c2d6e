// Blocks on a Redis server, or cluster, that several machines share. Everything
// that comes from it is untrusted: the caller verifies. Everything it does has
// a deadline, and after a failure it is left alone for a while.
//
//   key    hearth:kv1:<64 hex of the block id>:<part>, or with a key that its
//          machines share hearth:kv2:<16 hex of the key's id>:<…>:<part>
//          (no hash tag: they spread)
//   value  at most 4 MiB of: u64 length of the file, then the file
//
// docs/formats/remote.md.
//
// Threads  every call may be made from any thread; Fetch and Offer do not wait
//          for each other.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_set>
#include <vector>

#include "base/files/vault.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "store/directory/save_queue.h"
#include "store/remote/redis_servers.h"

namespace hearth {

// What sending may still take at the end of a run.
inline constexpr double kUploadSecondsMax = 10;

inline constexpr std::size_t kRemoteValueBytesMax = std::size_t{4} << 20;

// `key`: null without one.
std::string RemoteKey(const Digest& id, std::size_t part,
                      const Vault* key = nullptr);

// Whether to try now, and since when not.
class Backoff {
 public:
  using Clock = std::chrono::steady_clock;
  explicit Backoff(std::chrono::seconds first) : first_(first) {}
  bool open() const { return Clock::now() >= until_; }
  void Succeeded() { wait_ = first_; }
  // How long it is off now.
  std::chrono::seconds Failed();

 private:
  const std::chrono::seconds first_;
  std::chrono::seconds wait_ = first_;
  Clock::time_point until_ = {};
};

class RemoteTier {
 public:
  // Connects at the first use. `deadline`: of one Fetch, or of one Offer's
  // sending, connecting included. `pause`: after a first failure.
  // `key`: see RemoteKey.
  RemoteTier(RemoteUrl url, std::shared_ptr<const Vault> key,
             std::chrono::milliseconds deadline, std::chrono::seconds pause);
  ~RemoteTier();

  struct Fetched {
    std::vector<std::string> files;  // of the leading ids, without a gap
    std::string reason;              // why not more; empty when all are there
    std::string warning;             // it has just been turned off; once
  };
  // Files of at most `file_bytes_max` bytes.
  Fetched Fetch(std::span<const Digest> ids, std::size_t file_bytes_max,
                Deadline deadline);
  // The file of the first of these ids that is there; `index` ids.size(): none.
  struct First {
    std::size_t index = 0;
    std::string file;
    std::string warning;  // as Fetched's
  };
  First FetchFirst(std::span<const Digest> ids, std::size_t file_bytes_max,
                   Deadline deadline);
  Deadline NewDeadline() const {
    return std::chrono::steady_clock::now() + deadline_;
  }
  // What the server has under this id is not the block: the next offer of it
  // replaces it, instead of finding it there.
  void Distrust(const Digest& id);

  // Hands a block's file to the sending thread; waits while that has too much
  // to do, which a server that is off never makes it have. Not sent when it is
  // there already.
  void Offer(const Digest& id, std::vector<std::byte> file);
  // Nothing more is sent.
  void GiveUp() { giving_up_ = true; }
  // Waits for what was offered, `seconds_max` at most (0: kUploadSecondsMax).
  // An Error says how many blocks are not there, since the last call, and why.
  Result<void> Drain(double seconds_max);

 private:
  struct Link {
    explicit Link(std::chrono::seconds pause) : backoff(pause) {}
    Mutex mutex;  // held for a whole call
    std::unique_ptr<RedisServers> servers HEARTH_GUARDED_BY(mutex);
    Backoff backoff HEARTH_GUARDED_BY(mutex);
    // What it was last turned off for.
    std::string told HEARTH_GUARDED_BY(mutex);
  };

  Result<void> Ready(Link& link, Deadline deadline) HEARTH_REQUIRES(link.mutex);
  Result<bool> FetchSome(Link& link, std::span<const Digest> ids,
                         std::size_t file_bytes_max, Deadline deadline,
                         std::vector<std::string>& files)
      HEARTH_REQUIRES(link.mutex);
  Result<void> LookForFirst(Link& link, std::span<const Digest> ids,
                            std::size_t file_bytes_max, Deadline deadline,
                            First& first) HEARTH_REQUIRES(link.mutex);
  Result<void> Send(const Digest& id, std::span<const std::byte> file);
  std::string TurnOff(Link& link, const Error& error)
      HEARTH_REQUIRES(link.mutex);

  bool TakeDistrust(const Digest& id);

  const RemoteUrl url_;
  const std::shared_ptr<const Vault> key_;
  const std::chrono::milliseconds deadline_;
  Link fetching_, sending_;
  Mutex distrusted_mutex_;
  std::unordered_set<Digest> distrusted_ HEARTH_GUARDED_BY(distrusted_mutex_);
  std::atomic<bool> giving_up_{false};
  std::atomic<std::uint64_t> n_offered_{0}, n_there_{0}, n_told_{0};
  SaveQueue queue_;
};

}  // namespace hearth
