#include "cli/terminal/progress.h"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/start_thread.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"

namespace hearth::cli {
namespace {

constexpr double kQuietSeconds = 1.0;
constexpr double kTerminalInterval = 0.1;
constexpr double kLogInterval = 5.0;
constexpr std::size_t kBarMin = 6, kBarMax = 30;

std::string Amount(Unit unit, std::uint64_t n) {
  return unit == Unit::kBytes ? HumanBytes(n) : std::to_string(n);
}

const char* NameOf(Unit unit) {
  switch (unit) {
    case Unit::kTokens:
      return " tokens";
    case Unit::kRuns:
      return " runs";
    case Unit::kBytes:
      return "";
  }
  return "";
}

}  // namespace

std::string ProgressText(const std::string& what, Unit unit, std::uint64_t done,
                         std::uint64_t total, double rate, int columns) {
  done = std::min(done, total);
  const double left = rate > 0 ? static_cast<double>(total - done) / rate : 0;
  const std::string speed =
      (unit == Unit::kBytes ? HumanBytes(static_cast<std::uint64_t>(rate))
                            : Fixed(rate, rate < 10 ? 1 : 0) + NameOf(unit)) +
      "/s";
  const std::string seconds = rate > 0 ? Fixed(left, 0) + " s left" : "";
  if (columns == 0) {
    return what + " " + Amount(unit, done) + " of " + Amount(unit, total) +
           NameOf(unit) + ", " + speed +
           (seconds.empty() ? "" : ", " + seconds);
  }
  const auto width = static_cast<std::size_t>(std::max(columns - 1, 0));
  const std::string percent =
      std::to_string(total > 0 ? 100 * done / total : 100) + "%";
  const std::string counted = Amount(unit, done) + "/" + Amount(unit, total);
  std::string tail = "  " + speed + (seconds.empty() ? "" : "  " + seconds);
  // "what [####....] 12/40  9 tokens/s  3 s left"
  const std::size_t words = what.size() + counted.size() + tail.size() + 4;
  if (words + kBarMin <= width) {
    const std::size_t bar = std::min(kBarMax, width - words);
    const std::size_t filled =
        total > 0 ? static_cast<std::size_t>(static_cast<double>(bar) *
                                             static_cast<double>(done) /
                                             static_cast<double>(total))
                  : bar;
    return what + " [" + std::string(filled, '#') +
           std::string(bar - filled, '.') + "] " + counted + tail;
  }
  std::string text = what + " " + percent + tail;
  if (text.size() > width) text = what + " " + percent;
  if (text.size() > width) text = percent;
  return text.substr(0, width);
}

SlowNote::SlowNote(std::string text, bool quiet) {
  if (quiet) return;
  // Without a thread it says nothing.
  waiting_ = TryStartThread([this, text = std::move(text)] {
    std::unique_lock lock(mutex_);
    const bool in_time =
        ended_.wait_for(lock, std::chrono::duration<double>(kQuietSeconds),
                        [this] { return over_; });
    if (!in_time) Note(text);
  });
}

SlowNote::~SlowNote() {
  if (!waiting_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  ended_.notify_all();
  waiting_.join();
}

Progress::Progress(std::string what, Unit unit, bool quiet)
    : what_(std::move(what)),
      unit_(unit),
      quiet_(quiet),
      terminal_(::isatty(STDERR_FILENO) == 1) {}

Progress::~Progress() {
  if (drawn_ && terminal_) std::fprintf(stderr, "\r\033[K");
}

void Progress::Update(std::uint64_t done, std::uint64_t total) {
  if (quiet_) return;
  if (!begun_) {
    begun_ = true;
    first_done_ = done;
  }
  const auto now = Clock::now();
  const std::chrono::duration<double> since_start = now - start_;
  const std::chrono::duration<double> since_last = now - last_;
  const double interval = terminal_ ? kTerminalInterval : kLogInterval;
  if (done >= total || since_start.count() < kQuietSeconds ||
      since_last.count() < interval) {
    return;
  }
  last_ = now;
  drawn_ = true;
  const double rate = static_cast<double>(done - std::min(done, first_done_)) /
                      since_start.count();
  const std::string text = ProgressText(what_, unit_, done, total, rate,
                                        terminal_ ? TerminalColumns() : 0);
  std::fprintf(stderr, terminal_ ? "\r\033[K%s" : "hearth: %s\n", text.c_str());
}

}  // namespace hearth::cli
