// Child processes and the page cache, for measurements of a start.
#include <fcntl.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "base/file.h"
#include "cli/bench/bench.h"

extern char** environ;

namespace hearth::cli {
namespace {

using Clock = std::chrono::steady_clock;

double MsSince(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start)
      .count();
}

// Reads to the end; keeps the last line and when the first one came.
void ReadLines(int fd, Clock::time_point start, ChildRun& run) {
  std::string text;
  char buffer[4096];
  while (true) {
    const ssize_t n = ::read(fd, buffer, sizeof(buffer));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    text.append(buffer, static_cast<std::size_t>(n));
    if (run.first_line_ms == 0 && text.find('\n') != std::string::npos) {
      run.first_line_ms = MsSince(start);
    }
  }
  while (text.ends_with('\n')) text.pop_back();
  const auto at = text.rfind('\n');
  run.last_line = at == std::string::npos ? text : text.substr(at + 1);
}

Result<void> DropFile(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {Code::kIo, path + ": " + ErrnoText(errno)};
  // Pages that are not on the disk yet cannot be dropped.
  int error = ::fdatasync(fd) == 0 ? 0 : errno;
  if (error == 0) error = ::posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
  ::close(fd);
  if (error != 0) return {Code::kIo, path + ": " + ErrnoText(error)};
  return {};
}

}  // namespace

Result<ChildRun> RunSelf(const std::vector<std::string>& arguments) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {Code::kIo, ErrnoText(errno)};
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  std::vector<char*> argv = {const_cast<char*>("hearth")};
  for (const std::string& word : arguments) {
    argv.push_back(const_cast<char*>(word.c_str()));
  }
  argv.push_back(nullptr);
  const auto start = Clock::now();
  pid_t child = 0;
  const int error = ::posix_spawn(&child, "/proc/self/exe", &actions, nullptr,
                                  argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return {Code::kIo, "cannot start a child process: " + ErrnoText(error)};
  }
  ChildRun run;
  ReadLines(ends[0], start, run);
  ::close(ends[0]);
  int status = 0;
  struct rusage usage = {};
  while (::wait4(child, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  run.total_ms = MsSince(start);
  run.peak_rss_bytes = 1024 * static_cast<std::uint64_t>(usage.ru_maxrss);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
    return {Code::kIo, "a child process of the measurement failed"};
  }
  return run;
}

Result<void> DropFromPageCache(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code error;
  if (!fs::is_directory(path, error)) return DropFile(path);
  for (fs::recursive_directory_iterator it(path, error), end;
       !error && it != end; it.increment(error)) {
    if (it->is_regular_file(error)) HEARTH_TRY(DropFile(it->path().string()));
  }
  if (error) return {Code::kIo, path + ": " + error.message()};
  return {};
}

}  // namespace hearth::cli
