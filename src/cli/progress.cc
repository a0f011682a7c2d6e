#include "cli/progress.h"

#include <unistd.h>

#include <cstdio>
#include <string>

namespace hearth::cli {
namespace {

constexpr double kQuietSeconds = 1.0;
constexpr double kTerminalInterval = 0.1;
constexpr double kLogInterval = 5.0;
constexpr int kBarWidth = 30;

}  // namespace

PrefillProgress::PrefillProgress(bool quiet)
    : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1) {}

PrefillProgress::~PrefillProgress() {
  if (drawn_ && terminal_) std::fprintf(stderr, "\r\033[K");
}

void PrefillProgress::Update(int done, int total) {
  if (first_done_ < 0) first_done_ = done;
  const auto now = Clock::now();
  const std::chrono::duration<double> since_start = now - start_;
  const std::chrono::duration<double> since_last = now - last_;
  const double interval = terminal_ ? kTerminalInterval : kLogInterval;
  if (quiet_ || done >= total || since_start.count() < kQuietSeconds ||
      since_last.count() < interval) {
    return;
  }
  last_ = now;
  drawn_ = true;
  Draw(done, total, since_start.count());
}

void PrefillProgress::Draw(int done, int total, double seconds) {
  const double rate = (done - first_done_) / seconds;
  const double left = rate > 0 ? (total - done) / rate : 0;
  if (!terminal_) {
    std::fprintf(
        stderr, "hearth: prefill %d of %d tokens, %.0f tokens/s, %.0f s left\n",
        done, total, rate, left);
    return;
  }
  const int filled = kBarWidth * done / total;
  const std::string bar =
      std::string(static_cast<std::size_t>(filled), '#') +
      std::string(static_cast<std::size_t>(kBarWidth - filled), '.');
  std::fprintf(stderr, "\r\033[Kprefill [%s] %d/%d  %.0f tokens/s  %.0f s left",
               bar.c_str(), done, total, rate, left);
}

}  // namespace hearth::cli
