// A real redis-server for tests, on a free port of this machine.
#pragma once

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include "store/remote/redis_servers.h"

namespace hearth {

inline Deadline In(int ms) {
  return std::chrono::steady_clock::now() + std::chrono::milliseconds(ms);
}

// For what takes milliseconds, unless it hangs.
inline Deadline InAMinute() { return In(60'000); }

// A socket that listens on 127.0.0.1; the port it got.
inline int Listen(int& port) {
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof(address);
  ::bind(fd, reinterpret_cast<struct sockaddr*>(&address), length);
  ::listen(fd, 4);
  ::getsockname(fd, reinterpret_cast<struct sockaddr*>(&address), &length);
  port = ntohs(address.sin_port);
  return fd;
}

class RedisServer {
 public:
  explicit RedisServer(std::vector<std::string> arguments = {},
                       bool tls = false) {
    ::close(Listen(port_));
    const std::string port = std::to_string(port_);
    std::vector<std::string> all = {"redis-server",
                                    "--bind",
                                    "127.0.0.1",
                                    "--save",
                                    "",
                                    "--appendonly",
                                    "no",
                                    "--daemonize",
                                    "no",
                                    "--logfile",
                                    "/dev/null",
                                    tls ? "--tls-port" : "--port",
                                    port};
    if (tls) all.insert(all.end(), {"--port", "0"});
    all.insert(all.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& argument : all) argv.push_back(argument.data());
    argv.push_back(nullptr);
    pid_ = ::fork();
    if (pid_ == 0) {
      ::execvp(argv[0], argv.data());
      ::_exit(127);
    }
  }
  ~RedisServer() { Stop(); }
  RedisServer(const RedisServer&) = delete;

  // False: there is no redis-server on this machine, or not with these
  // arguments.
  bool WaitUntilUp(const RemoteUrl& url) {
    for (const Deadline deadline = InAMinute();
         std::chrono::steady_clock::now() < deadline;) {
      const auto servers = RedisServers::Connect(url, deadline);
      if (servers.ok() && (*servers)->Exists("x", deadline).ok()) return true;
      int status = 0;
      if (::waitpid(pid_, &status, WNOHANG) == pid_) {
        pid_ = -1;
        return false;
      }
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    ADD_FAILURE() << "redis-server runs and does not answer";
    return false;
  }
  void Stop() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    int status = 0;
    ::waitpid(pid_, &status, 0);
    pid_ = -1;
  }
  void Pause() const { ::kill(pid_, SIGSTOP); }
  void Continue() const { ::kill(pid_, SIGCONT); }
  RemoteUrl url() const { return {.host = "127.0.0.1", .port = port_}; }
  std::string text(const std::string& scheme = "redis://",
                   const std::string& who = "") const {
    return scheme + who + "127.0.0.1:" + std::to_string(port_) + "/0";
  }

 private:
  int port_ = 0;
  pid_t pid_ = -1;
};

}  // namespace hearth
