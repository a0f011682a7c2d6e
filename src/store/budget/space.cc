#include "store/budget/space.h"

#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "base/words/printable.h"
#include "base/words/units.h"
#include "store/directory/layout.h"
#include "store/directory/quarantine.h"

namespace hearth {
namespace {

// usage := u64 total, u64 XXH3-64 of it. Torn or empty: unknown.
constexpr std::size_t kUsageBytes = 16;

// When a large store makes room it makes some more, so that a full one does not
// scan before every write.
std::uint64_t Slack(std::uint64_t budget) {
  return budget >= (std::uint64_t{1} << 30) ? budget / 16 : 0;
}

std::uint64_t Excess(std::uint64_t total, std::uint64_t limit) {
  return total > limit ? total - limit : 0;
}

// The process that has a lock on the open file, in words; empty when the system
// does not say (another machine, another process space).
std::string HolderOf(int fd) {
  struct stat st;
  if (::fstat(fd, &st) != 0) return "";
  const std::string inode = ":" + std::to_string(st.st_ino);
  std::ifstream locks("/proc/locks");
  for (std::string line; std::getline(locks, line);) {
    // "<n>: FLOCK ADVISORY WRITE <pid> <major>:<minor>:<inode> 0 EOF"
    std::istringstream fields(line);
    std::string number, kind, mode, access, file;
    long pid = 0;
    fields >> number >> kind >> mode >> access >> pid >> file;
    if (kind != "FLOCK" || !file.ends_with(inode) || pid <= 0) continue;
    const std::string process = "/proc/" + std::to_string(pid);
    std::string name, status;
    std::getline(std::ifstream(process + "/comm"), name);
    std::getline(std::ifstream(process + "/stat"), status);
    const std::size_t end = status.rfind(") ");
    const bool stopped =
        end != std::string::npos && status.substr(end + 2, 1) == "T";
    return "process " + std::to_string(pid) + " (" + Printable(name) +
           (stopped ? ", which is stopped)" : ")");
  }
  return "";
}

Error HeldError(const std::string& path, int fd, const SpaceLimits& limits) {
  std::string holder = HolderOf(fd);
  if (holder.empty()) holder = "another process";
  return {Code::kIo, path + ": held by " + holder + " for more than " +
                         std::to_string(limits.lock_wait.count()) + " ms"};
}

}  // namespace

Result<SpaceLock> SpaceLock::Take(const Directory& root,
                                  const SpaceLimits& limits,
                                  const std::atomic<bool>* stop) {
  auto fd = root.OpenForUpdate(kUsageName);
  if (!fd.ok() && fd.error().code == Code::kInvalidArgument &&
      SetAside(root, root, kUsageName)) {
    fd = root.OpenForUpdate(kUsageName);
  }
  if (!fd.ok()) return fd.error();
  const auto deadline = std::chrono::steady_clock::now() + limits.lock_wait;
  std::chrono::milliseconds pause{1};
  while (::flock(fd->get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EINTR) continue;
    // A file system without locks: the budget then holds per process.
    if (errno != EWOULDBLOCK) break;
    if (stop != nullptr && *stop) {
      return {Code::kCancelled, "saving was given up"};
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      return HeldError(root.PathOf(kUsageName), fd->get(), limits);
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::milliseconds(16));
  }
  return SpaceLock(std::move(*fd));
}

bool SpaceLock::ReadTotal(std::uint64_t& total) const {
  std::byte bytes[kUsageBytes];
  if (::pread(fd_.get(), bytes, kUsageBytes, 0) !=
      static_cast<ssize_t>(kUsageBytes)) {
    return false;
  }
  if (LoadLe<std::uint64_t>(bytes + 8) !=
      Checksum64(ByteSpan(bytes).first(8))) {
    return false;
  }
  total = LoadLe<std::uint64_t>(bytes);
  return true;
}

Result<void> SpaceLock::WriteTotal(const Directory& root,
                                   std::uint64_t total) const {
  std::byte bytes[kUsageBytes];
  StoreLe(bytes, total);
  StoreLe(bytes + 8, Checksum64(ByteSpan(bytes).first(8)));
  ByteSpan rest(bytes);
  bool failed = ::lseek(fd_.get(), 0, SEEK_SET) != 0;
  while (!failed && !rest.empty()) {
    const ssize_t n = root.ops().Write(fd_.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    failed = n <= 0;
    if (!failed) rest = rest.subspan(static_cast<std::size_t>(n));
  }
  if (!failed) return {};
  const int number = errno;
  return {number == ENOSPC ? Code::kResourceFull : Code::kIo,
          root.PathOf(kUsageName) + ": " + ErrnoText(number)};
}

Result<void> SpaceLock::MakeRoom(const Directory& root, std::uint64_t bytes,
                                 const SpaceLimits& limits,
                                 const Protection& protection, bool recount,
                                 Room room) {
  const std::uint64_t budget =
      limits.disk_budget_bytes > 0 ? limits.disk_budget_bytes : ~0ull;
  std::uint64_t total = 0;
  const bool known = !recount && ReadTotal(total);
  const long long free_bytes =
      limits.free_space_reserve_bytes > 0 ? root.FreeBytes() : -1;
  const std::uint64_t needed_free = bytes + limits.free_space_reserve_bytes;
  const std::uint64_t free_short =
      free_bytes < 0
          ? 0
          : Excess(needed_free, static_cast<std::uint64_t>(free_bytes));
  if (limits.disk_budget_bytes == 0 && free_short == 0 && !recount) {
    // Nobody here cares; but keep the sum right for a process that does.
    return known ? WriteTotal(root, total + bytes) : Result<void>();
  }
  if (known && free_short == 0 && total + bytes <= budget) {
    return WriteTotal(root, total + bytes);
  }
  HEARTH_ASSIGN(const Catalog catalog, ScanStore(root));
  total = catalog.total_bytes + kUsageBytes;  // which may be empty still
  const std::uint64_t needed =
      std::max(Excess(total + bytes, budget), free_short);
  if (needed > 0 && room == Room::kSpare) {
    HEARTH_TRY(WriteTotal(root, total));
    return {Code::kResourceFull,
            root.path() + ": no spare room for " + InUnits(bytes)};
  }
  if (needed > 0) {
    const auto order =
        EvictionOrder(root, catalog, protection, limits.eviction, NowNs());
    std::uint64_t possible = 0;
    for (const std::size_t i : order) possible += catalog.files[i].bytes;
    if (possible < needed) {
      if (free_short > Excess(total + bytes, budget)) {
        return {Code::kResourceFull, root.path() + ": the disk has less than " +
                                         InUnits(needed_free) +
                                         " free; not saved"};
      }
      return {Code::kResourceFull,
              root.path() + ": the budget of " + InUnits(budget) +
                  " is taken by entries that are pinned or in use; not saved"};
    }
    const std::uint64_t wanted = needed + Slack(limits.disk_budget_bytes);
    total -= std::min(total, Evict(root, catalog, order, wanted).bytes);
    if (total + bytes > budget) {
      (void)WriteTotal(root, total);
      return {Code::kResourceFull,
              root.path() + ": room could not be made; not saved"};
    }
  }
  return WriteTotal(root, total + bytes);
}

Result<std::uint64_t> SpaceLock::Total(const Directory& root) {
  std::uint64_t total = 0;
  if (ReadTotal(total)) return total;
  HEARTH_ASSIGN(const Catalog catalog, ScanStore(root));
  total = catalog.total_bytes + kUsageBytes;
  HEARTH_TRY(WriteTotal(root, total));
  return total;
}

}  // namespace hearth
