// A client that sends bytes as a test has them, right or wrong, and reads what
// comes back. It waits 20 s at most for anything.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <string_view>

namespace hearth {

class RawClient {
 public:
  explicit RawClient(int port, bool v6 = false) {
    fd_ = ::socket(v6 ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
    if (v6) {
      sockaddr_in6 to = {};
      to.sin6_family = AF_INET6;
      to.sin6_port = htons(static_cast<std::uint16_t>(port));
      to.sin6_addr = in6addr_loopback;
      connected_ =
          ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
    } else {
      sockaddr_in to = {};
      to.sin_family = AF_INET;
      to.sin_port = htons(static_cast<std::uint16_t>(port));
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      connected_ =
          ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) == 0;
    }
  }
  ~RawClient() { Close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }

  void Send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (n <= 0) return;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
  }
  void EndSending() { ::shutdown(fd_, SHUT_WR); }
  // Closes with a reset.
  void Reset() {
    const linger now = {1, 0};
    ::setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    Close();
  }
  void Close() {
    if (fd_ >= 0) ::close(fd_);
    fd_ = -1;
  }

  // More of what comes into received(); false at the end, or after so long.
  bool More(int timeout_ms = 20'000) {
    pollfd wait = {fd_, POLLIN, 0};
    if (::poll(&wait, 1, timeout_ms) <= 0) return false;
    char buffer[65536];
    const ssize_t n = ::recv(fd_, buffer, sizeof(buffer), 0);
    if (n <= 0) {
      ended_ = true;
      return false;
    }
    received_.append(buffer, static_cast<std::size_t>(n));
    return true;
  }
  // Reads until it holds the text.
  bool Until(std::string_view text) {
    while (received_.find(text) == std::string::npos) {
      if (!More()) return false;
    }
    return true;
  }
  std::string ToEnd() {
    while (More()) {
    }
    return received_;
  }
  // One answer: its head and its body, chunks joined. Empty when none came.
  struct Answer {
    int status = 0;
    std::string head, body;
  };
  Answer Read(bool no_body = false) {
    Answer answer;
    if (!Until("\r\n\r\n")) return answer;
    const std::size_t end = received_.find("\r\n\r\n") + 4;
    answer.head = Take(end);
    answer.status = std::atoi(answer.head.c_str() + 9);
    if (no_body || answer.status == 204 || answer.status == 100) return answer;
    const std::string length = Header(answer, "Content-Length");
    if (!length.empty()) {
      const auto n = static_cast<std::size_t>(std::atoll(length.c_str()));
      while (received_.size() < n && More()) {
      }
      answer.body = Take(n);
    } else if (Header(answer, "Transfer-Encoding") == "chunked") {
      ReadChunks(answer.body);
    } else {
      answer.body = ToEnd();
      received_.clear();
    }
    return answer;
  }
  static std::string Header(const Answer& answer, const std::string& name) {
    const std::size_t at = answer.head.find("\r\n" + name + ": ");
    if (at == std::string::npos) return "";
    const std::size_t from = at + 4 + name.size();
    return answer.head.substr(from, answer.head.find("\r\n", from) - from);
  }

  const std::string& received() const { return received_; }
  bool ended() const { return ended_; }

 private:
  std::string Take(std::size_t n) {
    std::string taken = received_.substr(0, n);
    received_.erase(0, n);
    return taken;
  }
  void ReadChunks(std::string& body) {
    for (;;) {
      if (!Until("\r\n")) return;
      const std::size_t end = received_.find("\r\n") + 2;
      const std::size_t n = std::strtoull(Take(end).c_str(), nullptr, 16);
      while (received_.size() < n + 2 && More()) {
      }
      body += Take(n);
      Take(2);
      if (n == 0) return;
    }
  }

  int fd_ = -1;
  bool connected_ = false, ended_ = false;
  std::string received_;
};

}  // namespace hearth
