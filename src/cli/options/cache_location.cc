#include "cli/options/cache_location.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace hearth::cli {
namespace {

constexpr std::uint64_t kBudgetMax = 20'000'000'000;

std::string Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

}  // namespace

std::string DefaultCacheDirectory() {
  const std::string own = Variable("HEARTH_CACHE_DIR");
  if (!own.empty()) return own;
  const std::string caches = Variable("XDG_CACHE_HOME");
  if (caches.starts_with('/')) return caches + "/hearth";
  const std::string home = Variable("HOME");
  if (home.starts_with('/')) return home + "/.cache/hearth";
  return "";
}

std::uint64_t CacheBudgetFor(std::uint64_t free_bytes) {
  // 0 would mean no limit.
  return std::clamp<std::uint64_t>(free_bytes / 10, 1, kBudgetMax);
}

std::uint64_t DefaultCacheBudget(const std::string& directory) {
  std::filesystem::path at = directory;
  struct statvfs disk;
  while (::statvfs(at.empty() ? "." : at.c_str(), &disk) != 0) {
    if (at.empty() || at == at.root_path()) return kBudgetMax;
    at = at.parent_path();
  }
  return CacheBudgetFor(std::uint64_t{disk.f_bavail} * disk.f_frsize);
}

}  // namespace hearth::cli
