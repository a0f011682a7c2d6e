#include "cli/serve/serve_signals.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>

namespace hearth::cli {
namespace {

std::atomic<int> wake{-1};

void OnSignal(int number) {
  const int error = errno;
  const char byte = number == SIGHUP ? 'h' : 'e';
  // A full pipe holds wishes enough.
  [[maybe_unused]] const ssize_t n = ::write(wake.load(), &byte, 1);
  errno = error;
}

void Set(int number, void (*handler)(int), int flags) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  ::sigaction(number, &action, nullptr);
}

}  // namespace

ServeSignals::ServeSignals() {
  if (::pipe2(pipe_, O_CLOEXEC) != 0) return;
  ::fcntl(pipe_[1], F_SETFL, O_NONBLOCK);
  wake.store(pipe_[1]);
  // Reset after the first: the second signal has its default effect.
  const int once = static_cast<int>(SA_RESETHAND | SA_RESTART);
  Set(SIGINT, OnSignal, once);
  Set(SIGTERM, OnSignal, once);
  Set(SIGHUP, OnSignal, SA_RESTART);
}

ServeSignals::~ServeSignals() {
  for (const int number : {SIGINT, SIGTERM, SIGHUP}) Set(number, SIG_DFL, 0);
  wake.store(-1);
  for (const int end : pipe_) {
    if (end >= 0) ::close(end);
  }
}

ServeSignals::Wish ServeSignals::Next(bool can_reload) {
  char byte = 'e';
  while (::read(pipe_[0], &byte, 1) < 0 && errno == EINTR) {
  }
  const Wish wish = byte == 'h' && can_reload ? Wish::kReload : Wish::kEnd;
  // Whichever asked for the end, the next of any kind is at once.
  if (wish == Wish::kEnd) {
    for (const int number : {SIGINT, SIGTERM, SIGHUP}) Set(number, SIG_DFL, 0);
  }
  return wish;
}

void IgnoreBrokenPipes() {
  Set(SIGPIPE, SIG_IGN, 0);
  // A limit on the length of files, too.
  Set(SIGXFSZ, SIG_IGN, 0);
}

}  // namespace hearth::cli
