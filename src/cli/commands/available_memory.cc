#include "cli/commands/available_memory.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <sstream>
#include <string>

namespace hearth::cli {
namespace {

// A number that is all of a file; 0 where there is none ("max").
std::uint64_t NumberIn(const std::string& path) {
  std::ifstream file(path);
  std::uint64_t number = 0;
  file >> number;
  return file.fail() ? 0 : number;
}

// /proc/self/cgroup has "0::/path" under version 2 of control groups.
std::string ControlGroup() {
  std::ifstream file("/proc/self/cgroup");
  std::string line;
  while (std::getline(file, line)) {
    if (line.starts_with("0::")) return "/sys/fs/cgroup" + line.substr(3);
  }
  return "";
}

std::uint64_t OfSystem() {
  std::ifstream file("/proc/meminfo");
  std::string line;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t kib = 0;
    if (words >> name >> kib && name == "MemAvailable:") return kib * 1024;
  }
#ifdef _SC_AVPHYS_PAGES
  const long pages = ::sysconf(_SC_AVPHYS_PAGES);
  const long size = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && size > 0) {
    return static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(size);
  }
#endif
  return 0;
}

}  // namespace

std::uint64_t AvailableMemory() {
  std::uint64_t left = OfSystem();
  const std::string group = ControlGroup();
  if (group.empty()) return left;
  const std::uint64_t limit = NumberIn(group + "/memory.max");
  const std::uint64_t used = NumberIn(group + "/memory.current");
  if (limit == 0) return left;
  const std::uint64_t room = limit > used ? limit - used : 0;
  return left == 0 ? room : std::min(left, room);
}

}  // namespace hearth::cli
