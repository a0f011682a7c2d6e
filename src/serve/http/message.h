// HTTP without sockets: what a request is, and the two ends that handle it. All
// above works with these alone, so that its tests need no network.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::serve {

struct HttpHeader {
  std::string name, value;
};

struct HttpRequest {
  std::string method;  // "GET"
  std::string path;    // as sent, up to the question mark
  std::string query;   // behind it
  std::vector<HttpHeader> headers = {};
  std::string body = {};
  std::string peer = {};  // the client's address

  // The first such header's value; names match in any case. Null: none.
  const std::string* Find(std::string_view name) const;
  std::string_view Header(std::string_view name) const {
    const std::string* found = Find(name);
    return found == nullptr ? std::string_view() : *found;
  }
};

// Text that is equal but for the case of ASCII letters.
bool SameName(std::string_view a, std::string_view b);

struct HttpAnswer {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  std::vector<HttpHeader> headers = {};
};

// What HTTP itself has against a request.
struct HttpProblem {
  int status = 400;
  std::string message = {};  // names the cause and the remedy
};

// What the maker of an answer wants to be told, by the thread of the sockets;
// these must not wait.
struct ReplyWatch {
  // Nobody will read the answer any more. Once, and at once when that is so
  // already.
  std::function<void()> gone = {};
  // More is waiting to be read than a stream may hold; later: there is room.
  std::function<void(bool full)> full = {};
  // Nothing has been sent for `quiet_first_ms`, later for `quiet_every_ms`.
  std::function<void()> quiet = {};
  int quiet_first_ms = 0, quiet_every_ms = 0;  // 0: never
};

// Takes one answer: a whole one, or Start, Send as often as there is something,
// End. Destroyed before its end, the connection is closed.
//
// Threads  any; each call returns at once, and what is sent goes out in the
//          order of the calls.
class Reply {
 public:
  virtual ~Reply() = default;
  virtual void Watch(ReplyWatch watch) = 0;
  virtual void Whole(HttpAnswer answer) = 0;
  virtual void Start(int status, const std::string& content_type,
                     std::vector<HttpHeader> headers) = 0;
  virtual void Send(std::string bytes) = 0;
  virtual void End() = 0;
};

// Called by the thread of the sockets; must not wait.
class Handler {
 public:
  virtual ~Handler() = default;
  // The head has come (`body` is empty): an answer here refuses the request
  // before its body is read, and the connection is closed.
  virtual std::optional<HttpAnswer> Refuse(const HttpRequest& head) = 0;
  virtual void Handle(HttpRequest request, std::shared_ptr<Reply> reply) = 0;
  // The words for a problem that HTTP has. `head` is empty where it was not
  // understood.
  virtual HttpAnswer Problem(const HttpRequest& head,
                             const HttpProblem& problem) = 0;
};

}  // namespace hearth::serve
