// Bytes on their way to a client: what is being written, and what waits behind
// it. Knows no socket.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hearth::serve {

class Outbox {
 public:
  // `full_bytes`: from so many on whoever writes is to wait.
  explicit Outbox(std::size_t full_bytes) : full_bytes_(full_bytes) {}

  void Add(std::string_view bytes) { waiting_ += bytes; }
  // Takes up what waits. False when there is nothing, or some is being written.
  bool Begin() {
    if (!leaving_.empty() || waiting_.empty()) return false;
    leaving_.swap(waiting_);
    n_out_ = 0;
    return true;
  }
  // Of what is being written: what has not gone out. Stays where it is until
  // Took says that none is left.
  std::string_view left() const {
    return std::string_view(leaving_).substr(n_out_);
  }
  void Took(std::size_t n_bytes) {
    n_out_ += n_bytes;
    if (n_out_ < leaving_.size()) return;
    leaving_.clear();
    n_out_ = 0;
  }
  bool writes() const { return !leaving_.empty(); }
  bool empty() const { return leaving_.empty() && waiting_.empty(); }

  // Whether it has become full, or has room again, since the last look. Room
  // is a quarter, so that nobody is woken for a few bytes.
  std::optional<bool> Turned() {
    const std::size_t held = waiting_.size() + left().size();
    const bool now = full_ ? held > full_bytes_ / 4 : held > full_bytes_;
    if (now == full_) return std::nullopt;
    full_ = now;
    return full_;
  }
  bool full() const { return full_; }
  void ForgetFull() { full_ = false; }

 private:
  std::size_t full_bytes_;
  std::string waiting_, leaving_;
  std::size_t n_out_ = 0;  // of leaving_
  bool full_ = false;
};

}  // namespace hearth::serve
