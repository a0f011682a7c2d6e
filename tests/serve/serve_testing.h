// Runs `hearth serve` as a user does, and asks it over plain sockets.
#pragma once

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "hearth_test_paths.h"
#include "testing/temp_dir.h"

namespace hearth {

using TestJson = nlohmann::ordered_json;

struct HttpGot {
  int status = 0;                              // 0: no answer came
  std::map<std::string, std::string> headers;  // names in small letters
  std::string body;

  TestJson json() const { return TestJson::parse(body, nullptr, false); }
  std::string header(const std::string& name) const {
    const auto at = headers.find(name);
    return at == headers.end() ? "" : at->second;
  }
};

// One connection to this machine, for one request.
class HttpAsking {
 public:
  HttpAsking(int port, const std::string& method, const std::string& path,
             const std::string& body, const std::string& headers = "") {
    socket_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<std::uint16_t>(port));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(socket_, reinterpret_cast<sockaddr*>(&to), sizeof(to)) != 0) {
      return;
    }
    const std::string text =
        method + " " + path +
        " HTTP/1.1\r\nHost: 127.0.0.1:" + std::to_string(port) +
        "\r\nConnection: close\r\n" + headers +
        (body.empty() ? ""
                      : "Content-Type: application/json\r\nContent-Length: " +
                            std::to_string(body.size()) + "\r\n") +
        "\r\n" + body;
    for (std::size_t at = 0; at < text.size();) {
      const ssize_t n =
          ::send(socket_, text.data() + at, text.size() - at, MSG_NOSIGNAL);
      if (n <= 0) return;
      at += static_cast<std::size_t>(n);
    }
  }
  ~HttpAsking() { ::close(socket_); }
  HttpAsking(const HttpAsking&) = delete;
  HttpAsking& operator=(const HttpAsking&) = delete;

  // Reads until `text` has come; false at the end.
  bool WaitFor(const std::string& text) {
    while (all_.find(text) == std::string::npos) {
      if (!Read()) return false;
    }
    return true;
  }

  HttpGot Get() {
    while (Read()) {
    }
    HttpGot got;
    const std::size_t head = all_.find("\r\n\r\n");
    if (head == std::string::npos) return got;
    got.status = std::atoi(all_.c_str() + all_.find(' '));
    std::size_t at = all_.find("\r\n") + 2;
    while (at < head + 2) {
      const std::size_t end = all_.find("\r\n", at);
      std::string name = all_.substr(at, all_.find(':', at) - at);
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return std::tolower(c); });
      const std::size_t value = at + name.size() + 2;
      got.headers[name] = all_.substr(value, end - value);
      at = end + 2;
    }
    got.body = all_.substr(head + 4);
    if (got.header("transfer-encoding") == "chunked") {
      got.body = Dechunked(got.body);
    }
    return got;
  }

 private:
  bool Read() {
    char buffer[16384];
    const ssize_t n = ::recv(socket_, buffer, sizeof(buffer), 0);
    if (n > 0) all_.append(buffer, static_cast<std::size_t>(n));
    return n > 0;
  }

  static std::string Dechunked(const std::string& text) {
    std::string out;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t line = text.find("\r\n", at);
      if (line == std::string::npos) break;
      const auto n = static_cast<std::size_t>(
          std::strtoul(text.c_str() + at, nullptr, 16));
      if (n == 0) break;
      out += text.substr(line + 2, n);
      at = line + 2 + n + 2;
    }
    return out;
  }

  int socket_ = -1;
  std::string all_;
};

// The data of a stream's events, in order; Ollama's lines too.
inline std::vector<TestJson> EventsOf(const std::string& body) {
  std::vector<TestJson> events;
  std::size_t at = 0;
  while (at < body.size()) {
    const std::size_t end = std::min(body.find('\n', at), body.size());
    std::string line = body.substr(at, end - at);
    at = end + 1;
    if (line.starts_with("data: ")) line = line.substr(6);
    if (!line.starts_with("{")) continue;
    events.push_back(TestJson::parse(line, nullptr, false));
  }
  return events;
}

// A running server of its own, on a free port; ended with the object.
class ServeProgram {
 public:
  // `home`: where its prompt cache and its words are. `arguments`: the model
  // and options.
  ServeProgram(const TempDir& home, std::vector<std::string> arguments)
      : said_(home.path() + "/said") {
    arguments.insert(arguments.begin(),
                     {HEARTH_PROGRAM, "serve", "--port", "0",
                      "--prompt-cache-dir", home.path() + "/cache"});
    std::vector<char*> argv;
    for (std::string& one : arguments) argv.push_back(one.data());
    argv.push_back(nullptr);
    // What a server before it said here must not be taken for its words.
    ::unlink(said_.c_str());
    pid_ = ::fork();
    if (pid_ == 0) {
      const int out = ::open(said_.c_str(), O_CREAT | O_TRUNC | O_WRONLY, 0600);
      ::dup2(out, STDERR_FILENO);
      ::dup2(out, STDOUT_FILENO);
      ::execv(argv[0], argv.data());
      ::_exit(127);
    }
    // It opens the model first; whoever waits forever is stopped by ctest.
    const std::string mark = "listening on http://127.0.0.1:";
    while (port_ == 0 && ::waitpid(pid_, &status_, WNOHANG) == 0) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      const std::string text = said();
      const std::size_t at = text.find(mark);
      if (at != std::string::npos && text.find('\n', at) != std::string::npos) {
        port_ = std::atoi(text.c_str() + at + mark.size());
      }
    }
    EXPECT_NE(port_, 0) << said();
    if (port_ == 0) pid_ = -1;
  }
  ~ServeProgram() {
    if (pid_ > 0) End(SIGKILL);
  }
  ServeProgram(const ServeProgram&) = delete;
  ServeProgram& operator=(const ServeProgram&) = delete;

  int port() const { return port_; }
  std::string said() const {
    const auto text = ReadTextFile(said_);
    return text.ok() ? *text : "";
  }

  HttpGot Get(const std::string& path, const std::string& headers = "") const {
    return HttpAsking(port_, "GET", path, "", headers).Get();
  }
  HttpGot Post(const std::string& path, const TestJson& body,
               const std::string& headers = "") const {
    return HttpAsking(port_, "POST", path, body.dump(), headers).Get();
  }

  // The exit code, or 128 and the signal that ended it.
  int End(int signal) {
    ::kill(pid_, signal);
    ::waitpid(pid_, &status_, 0);
    pid_ = -1;
    return WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_);
  }

 private:
  const std::string said_;
  pid_t pid_ = -1;
  int status_ = 0;
  int port_ = 0;
};

}  // namespace hearth
