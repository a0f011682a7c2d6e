// What signals ask of a server: an orderly end, or its keys read again. After
// the first that asks for the end, the next one ends the program at once.
#pragma once

namespace hearth::cli {

class ServeSignals {
 public:
  enum class Wish { kEnd, kReload };

  ServeSignals();  // from here on; one at a time
  ~ServeSignals();
  ServeSignals(const ServeSignals&) = delete;
  ServeSignals& operator=(const ServeSignals&) = delete;

  // Waits. SIGHUP asks for a reload where there is something to reload, else
  // for the end: the terminal is gone.
  Wish Next(bool can_reload);

 private:
  int pipe_[2] = {-1, -1};
};

// A reader that has gone is an error of the write, not the end.
void IgnoreBrokenPipes();

}  // namespace hearth::cli
