#include "store/remote/remote_tier.h"

#include <algorithm>
#include <utility>

namespace hearth {
namespace {

// Blocks asked for at once: the answers must fit into memory.
constexpr std::size_t kBlocksAtOnce = 8;
// Waiting to be sent.
constexpr std::size_t kSendBytesMax = std::size_t{64} << 20;
constexpr std::chrono::seconds kPauseMost{300};
constexpr std::size_t kLengthBytes = sizeof(std::uint64_t);

std::size_t PartsOf(std::uint64_t file_bytes) {
  return static_cast<std::size_t>(
      (file_bytes + kLengthBytes - 1) / kRemoteValueBytesMax + 1);
}

// The length that the first part states; nothing when it cannot be right.
std::optional<std::uint64_t> StatedLength(std::string_view first,
                                          std::size_t file_bytes_max) {
  if (first.size() < kLengthBytes) return std::nullopt;
  const auto n = LoadLe<std::uint64_t>(first.data());
  if (n == 0 || n > file_bytes_max) return std::nullopt;
  return n;
}

}  // namespace

std::string RemoteKey(const Digest& id, std::size_t part, const Vault* key) {
  const std::string space = key == nullptr
                                ? "hearth:kv1:"
                                : "hearth:kv2:" + ToHex(key->key_id(), 8) + ":";
  return space + ToHex(id) + ":" + std::to_string(part);
}

std::chrono::seconds Backoff::Failed() {
  const std::chrono::seconds wait = wait_;
  until_ = Clock::now() + wait;
  wait_ = std::max(first_, std::min(2 * wait, kPauseMost));
  return wait;
}

RemoteTier::RemoteTier(RemoteUrl url, std::shared_ptr<const Vault> key,
                       std::chrono::milliseconds deadline,
                       std::chrono::seconds pause)
    : url_(std::move(url)),
      key_(std::move(key)),
      deadline_(deadline),
      fetching_(pause),
      sending_(pause),
      queue_(kSendBytesMax) {}

RemoteTier::~RemoteTier() {
  (void)Drain(std::chrono::duration<double>(deadline_).count());
}

Result<void> RemoteTier::Ready(Link& link, Deadline deadline) {
  if (link.servers != nullptr) return {};
  HEARTH_ASSIGN(link.servers, RedisServers::Connect(url_, deadline));
  return {};
}

std::string RemoteTier::TurnOff(Link& link, const Error& error) {
  link.servers.reset();
  const auto wait = link.backoff.Failed();
  if (std::exchange(link.told, error.message) == error.message) return "";
  return "shared cache " + url_.Name() + ": " + error.message +
         "; not used for " + std::to_string(wait.count()) + " s";
}

void RemoteTier::Distrust(const Digest& id) {
  const MutexLock lock(distrusted_mutex_);
  distrusted_.insert(id);
}

bool RemoteTier::TakeDistrust(const Digest& id) {
  const MutexLock lock(distrusted_mutex_);
  return distrusted_.erase(id) > 0;
}

RemoteTier::Fetched RemoteTier::Fetch(std::span<const Digest> ids,
                                      std::size_t file_bytes_max,
                                      Deadline deadline) {
  Fetched fetched;
  Link& link = fetching_;
  const MutexLock lock(link.mutex);
  if (!link.backoff.open()) {
    fetched.reason = "the shared cache is off after a failure";
    return fetched;
  }
  Result<void> ready = Ready(link, deadline);
  while (ready.ok() && fetched.files.size() < ids.size()) {
    const auto some =
        ids.subspan(fetched.files.size(),
                    std::min(kBlocksAtOnce, ids.size() - fetched.files.size()));
    const auto all =
        FetchSome(link, some, file_bytes_max, deadline, fetched.files);
    if (!all.ok()) {
      ready = all.error();
    } else if (!*all) {
      fetched.reason = "not in the shared cache";
      const std::string& trouble = link.servers->trouble();
      if (!trouble.empty()) fetched.reason += " (" + trouble + ")";
      break;
    }
  }
  if (ready.ok()) {
    link.backoff.Succeeded();
    link.told.clear();
    return fetched;
  }
  fetched.reason = "the shared cache: " + ready.error().message;
  if (ready.error().code == Code::kCancelled && !fetched.files.empty()) {
    link.servers.reset();  // it works, there was just too much to fetch
    return fetched;
  }
  fetched.warning = TurnOff(link, ready.error());
  return fetched;
}

// False when one of the blocks is not there; those before it are in `files`.
Result<bool> RemoteTier::FetchSome(Link& link, std::span<const Digest> ids,
                                   std::size_t file_bytes_max,
                                   Deadline deadline,
                                   std::vector<std::string>& files) {
  std::vector<std::string> keys;
  for (const Digest& id : ids) {
    keys.push_back(RemoteKey(id, 0, key_.get()));
  }
  HEARTH_ASSIGN(
      auto values,
      link.servers->Get(keys, keys.size() * kRemoteValueBytesMax, deadline));
  for (std::size_t i = 0; i < ids.size(); ++i) {
    if (!values[i].has_value()) return false;
    const auto length = StatedLength(*values[i], file_bytes_max);
    if (!length.has_value()) {
      Distrust(ids[i]);
      return false;
    }
    keys.clear();
    for (std::size_t part = 1; part < PartsOf(*length); ++part) {
      keys.push_back(RemoteKey(ids[i], part, key_.get()));
    }
    std::string file = values[i]->substr(kLengthBytes);
    if (!keys.empty()) {
      HEARTH_ASSIGN(const auto parts,
                    link.servers->Get(keys, keys.size() * kRemoteValueBytesMax,
                                      deadline));
      for (const auto& part : parts) file += part.value_or("");
    }
    if (file.size() != *length) {  // a part was evicted, or is another one's
      Distrust(ids[i]);
      return false;
    }
    files.push_back(std::move(file));
  }
  return true;
}

RemoteTier::First RemoteTier::FetchFirst(std::span<const Digest> ids,
                                         std::size_t file_bytes_max,
                                         Deadline deadline) {
  First first;
  first.index = ids.size();
  Link& link = fetching_;
  const MutexLock lock(link.mutex);
  if (!link.backoff.open()) return first;
  Result<void> done = Ready(link, deadline);
  if (done.ok()) {
    done = LookForFirst(link, ids, file_bytes_max, deadline, first);
  }
  if (done.ok()) {
    link.backoff.Succeeded();
    link.told.clear();
    return first;
  }
  first.index = ids.size();
  if (done.error().code == Code::kCancelled) {
    link.servers.reset();  // there was too much to ask for in the time
    return first;
  }
  first.warning = TurnOff(link, done.error());
  return first;
}

Result<void> RemoteTier::LookForFirst(Link& link, std::span<const Digest> ids,
                                      std::size_t file_bytes_max,
                                      Deadline deadline, First& first) {
  for (std::size_t from = 0; from < ids.size(); from += kBlocksAtOnce) {
    const auto some =
        ids.subspan(from, std::min(kBlocksAtOnce, ids.size() - from));
    std::vector<std::string> keys;
    for (const Digest& id : some) keys.push_back(RemoteKey(id, 0, key_.get()));
    HEARTH_ASSIGN(
        const auto values,
        link.servers->Get(keys, keys.size() * kRemoteValueBytesMax, deadline));
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (!values[i].has_value()) continue;
      std::vector<std::string> files;
      HEARTH_ASSIGN(
          const bool whole,
          FetchSome(link, some.subspan(i, 1), file_bytes_max, deadline, files));
      if (!whole) continue;
      first.index = from + i;
      first.file = std::move(files[0]);
      return {};
    }
  }
  return {};
}

void RemoteTier::Offer(const Digest& id, std::vector<std::byte> file) {
  const std::size_t bytes = file.size();
  ++n_offered_;
  queue_.Enqueue(
      [this, id, file = std::move(file)]() -> Result<void> {
        const auto sent = Send(id, file);
        // Said by the fetching side, which meets the same server.
        if (sent.ok()) return {};
        const MutexLock lock(sending_.mutex);
        (void)TurnOff(sending_, sent.error());
        return {};
      },
      bytes);
}

// The first part last: a block is there when all of it is.
Result<void> RemoteTier::Send(const Digest& id,
                              std::span<const std::byte> file) {
  Link& link = sending_;
  const MutexLock lock(link.mutex);
  if (!link.backoff.open() || queue_.giving_up() || giving_up_) return {};
  const Deadline deadline = NewDeadline();
  HEARTH_TRY(Ready(link, deadline));
  if (!TakeDistrust(id)) {
    HEARTH_ASSIGN(const bool there,
                  link.servers->Exists(RemoteKey(id, 0, key_.get()), deadline));
    if (there) {
      ++n_there_;
      return {};
    }
  }
  std::vector<std::byte> stream;
  stream.reserve(kLengthBytes + file.size());
  AppendLe(stream, std::uint64_t{file.size()});
  stream.insert(stream.end(), file.begin(), file.end());
  for (std::size_t part = PartsOf(file.size()); part-- > 0;) {
    const ByteSpan rest = ByteSpan(stream).subspan(part * kRemoteValueBytesMax);
    HEARTH_ASSIGN(
        const bool taken,
        link.servers->Set(
            RemoteKey(id, part, key_.get()),
            rest.first(std::min(rest.size(), kRemoteValueBytesMax)), deadline));
    if (!taken) {
      // The others of the cluster go on; this block stays here.
      link.told = link.servers->trouble();
      return {};
    }
  }
  link.backoff.Succeeded();
  link.told.clear();
  ++n_there_;
  return {};
}

Result<void> RemoteTier::Drain(double seconds_max) {
  if (seconds_max <= 0) seconds_max = kUploadSecondsMax;
  const auto drained =
      queue_.DrainFor(std::chrono::duration<double>(seconds_max));
  const std::uint64_t n_told = n_told_, n_there = n_there_;
  const std::uint64_t n_lost = n_offered_ - n_told - n_there;
  if (n_lost == 0) return {};
  n_told_ += n_lost;
  std::string why = "not sent in time";
  if (drained.ok()) {
    const MutexLock lock(sending_.mutex);
    if (!sending_.told.empty()) why = sending_.told;
  }
  return {Code::kIo, "shared cache " + url_.Name() + ": " +
                         std::to_string(n_lost) +
                         " blocks were not uploaded: " + why};
}

}  // namespace hearth
