// The progress of long work on stderr: a bar on a terminal, else a line every
// few seconds. Work of under a second shows nothing.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <thread>

namespace hearth::cli {

// What is counted.
enum class Unit : std::uint8_t { kTokens, kBytes, kRuns };

class Progress {
 public:
  // `what`: one word, "prefill".
  Progress(std::string what, Unit unit, bool quiet);
  ~Progress();  // takes the bar away
  void Update(std::uint64_t done, std::uint64_t total);

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  Unit unit_;
  bool quiet_;
  bool terminal_;
  bool drawn_ = false;
  bool begun_ = false;
  std::uint64_t first_done_ = 0;
  Clock::time_point start_ = Clock::now();
  Clock::time_point last_ = Clock::now();
};

// Says `text` when it lives longer than a second: for work that cannot tell how
// far it is. Silent when `quiet`.
class SlowNote {
 public:
  SlowNote(std::string text, bool quiet);
  ~SlowNote();

 private:
  std::mutex mutex_;
  std::condition_variable ended_;
  bool over_ = false;
  std::thread waiting_;
};

// How far it is: `rate` a second. With `columns` 0 a sentence, else a line with
// a bar that is shorter than that; a narrow one leaves out the bar, then the
// rate.
std::string ProgressText(const std::string& what, Unit unit, std::uint64_t done,
                         std::uint64_t total, double rate, int columns);

}  // namespace hearth::cli
