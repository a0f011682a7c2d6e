// A TCP connection, TLS or plain, whose every call has a deadline.
//
// Errors  kCancelled: the deadline. kIo: anything else that goes wrong; the
//         connection is of no use afterwards.
#pragma once

#include <chrono>
#include <memory>
#include <span>

#include "base/bytes.h"
#include "hearth/result.h"
#include "store/remote/remote_url.h"

namespace hearth {

using Deadline = std::chrono::steady_clock::time_point;

class Socket {
 public:
  // Looks the name up, connects and, for TLS, checks the certificate against
  // the system's authorities (SSL_CERT_FILE names others) and the host's name.
  static Result<Socket> Connect(const RemoteUrl& url, Deadline deadline);
  ~Socket();
  Socket(Socket&&) noexcept;
  Socket& operator=(Socket&&) = delete;

  Result<void> Write(ByteSpan bytes, Deadline deadline);
  // At least one byte, at most to.size().
  Result<std::size_t> Read(std::span<std::byte> to, Deadline deadline);

 private:
  struct State;
  explicit Socket(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace hearth
