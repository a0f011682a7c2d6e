#include "base/files/temporary_name.h"

#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "base/hash.h"

namespace hearth {
namespace {

constexpr std::string_view kTemporaryMark = ".tmp-";
constexpr std::int64_t kStaleNs = std::int64_t{3600} * 1'000'000'000;

// Process ids mean something only inside one PID namespace of one machine, and
// a store may be shared by several (containers, NFS).
const std::string& ProcessSpace() {
  static const std::string tag = [] {
    char host[256] = {};
    ::gethostname(host, sizeof(host) - 1);
    struct stat st = {};
    std::string text = host;
    if (::stat("/proc/self/ns/pid", &st) == 0) {
      text += " " + std::to_string(st.st_ino);
    }
    char hex[9];
    std::snprintf(hex, sizeof(hex), "%08x",
                  static_cast<unsigned>(Checksum64(AsBytes(text))));
    return std::string(hex);
  }();
  return tag;
}

bool IsOldForm(const std::string& name) {
  constexpr std::string_view kOldMark = ".tmp.";
  const std::size_t mark = name.rfind(kOldMark);
  if (mark == std::string::npos) return false;
  const std::string_view rest =
      std::string_view(name).substr(mark + kOldMark.size());
  const std::size_t dot = rest.find('.');
  const auto is_number = [](std::string_view text) {
    return !text.empty() &&
           text.find_first_not_of("0123456789") == std::string_view::npos;
  };
  return dot != std::string_view::npos && is_number(rest.substr(0, dot)) &&
         is_number(rest.substr(dot + 1));
}

}  // namespace

std::string TemporaryName(const std::string& name) {
  static std::atomic<unsigned> counter{0};
  return name + std::string(kTemporaryMark) + ProcessSpace() + "-" +
         std::to_string(::getpid()) + "-" +
         std::to_string(counter.fetch_add(1));
}

bool IsTemporary(const std::string& name) {
  return name.find(kTemporaryMark) != std::string::npos || IsOldForm(name);
}

bool IsStaleTemporary(const DirectoryEntry& entry) {
  if (!entry.is_file || !IsTemporary(entry.name)) return false;
  if (std::abs(NowNs() - entry.mtime_ns) > kStaleNs) return true;
  const std::size_t mark = entry.name.rfind(kTemporaryMark);
  if (mark == std::string::npos) return false;
  const std::string rest = entry.name.substr(mark + kTemporaryMark.size());
  const std::string here = ProcessSpace() + "-";
  if (!rest.starts_with(here)) return false;
  int pid = 0;
  const char* end = rest.data() + rest.size();
  const auto parsed = std::from_chars(rest.data() + here.size(), end, pid);
  if (parsed.ec != std::errc() || parsed.ptr == end || *parsed.ptr != '-') {
    return false;
  }
  return pid > 0 && ::kill(pid, 0) != 0 && errno == ESRCH;
}

void SweepTemporariesOf(const Directory& folder, const std::string& name) {
  const auto names = folder.Names();
  if (!names.ok()) return;
  const std::string start = name.empty() ? "" : name + ".tmp";
  for (const std::string& found : *names) {
    if (!IsTemporary(found) || !found.starts_with(start)) continue;
    const auto entry = folder.Stat(found);
    if (entry.ok() && IsStaleTemporary(*entry)) (void)folder.Remove(found);
  }
}

}  // namespace hearth
