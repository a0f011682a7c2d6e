#include "store/budget/space.h"

#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/bytes.h"
#include "base/hash.h"
#include "store/directory/layout.h"

namespace hearth {
namespace {

// usage := u64 total, u64 XXH3-64 of it. Torn or empty: unknown.
constexpr std::size_t kUsageBytes = 16;

// When a large store makes room it makes some more, so that a full one does not
// scan before every write.
std::uint64_t Slack(std::uint64_t budget) {
  return budget >= (std::uint64_t{1} << 30) ? budget / 16 : 0;
}

std::string Mebibytes(std::uint64_t bytes) {
  return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB";
}

std::uint64_t Excess(std::uint64_t total, std::uint64_t limit) {
  return total > limit ? total - limit : 0;
}

}  // namespace

Result<SpaceLock> SpaceLock::Take(const Directory& root) {
  HEARTH_ASSIGN(const int fd, root.OpenForUpdate(kUsageName));
  SpaceLock lock(fd);
  while (::flock(fd, LOCK_EX) != 0) {
    if (errno == EINTR) continue;
    // A file system without locks: the budget then holds per process.
    break;
  }
  return lock;
}

SpaceLock::~SpaceLock() {
  if (fd_ >= 0) ::close(fd_);  // and so unlocks
}

SpaceLock::SpaceLock(SpaceLock&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

bool SpaceLock::ReadTotal(std::uint64_t& total) const {
  std::byte bytes[kUsageBytes];
  if (::pread(fd_, bytes, kUsageBytes, 0) !=
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
  bool failed = ::lseek(fd_, 0, SEEK_SET) != 0;
  while (!failed && !rest.empty()) {
    const ssize_t n = root.ops().Write(fd_, rest.data(), rest.size());
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
                                 const Protection& protection, bool recount) {
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
  if (needed > 0) {
    const auto order =
        EvictionOrder(root, catalog, protection, limits.eviction, NowNs());
    std::uint64_t possible = 0;
    for (const std::size_t i : order) possible += catalog.files[i].bytes;
    if (possible < needed) {
      if (free_short > Excess(total + bytes, budget)) {
        return {Code::kResourceFull, root.path() + ": the disk has less than " +
                                         Mebibytes(needed_free) +
                                         " free; not saved"};
      }
      return {Code::kResourceFull,
              root.path() + ": the budget of " + Mebibytes(budget) +
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

}  // namespace hearth
