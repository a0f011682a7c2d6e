// Something to do at a time, unless it is put off or no more wanted.
//
// Threads  that of its executor.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <utility>

namespace hearth::serve {

class Alarm {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Alarm(boost::asio::any_io_executor executor)
      : timer_(std::move(executor)) {}

  // Instead of what it was set to before. `then` keeps the alarm alive.
  template <typename F>
  void Set(Clock::time_point at, F then) {
    timer_.expires_at(at);
    timer_.async_wait([this, then = std::move(then)](const auto& error) {
      // One that had rung already when it was set anew.
      if (error || timer_.expiry() > Clock::now()) return;
      then();
    });
  }
  void Cancel() { timer_.cancel(); }

 private:
  boost::asio::steady_timer timer_;
};

}  // namespace hearth::serve
