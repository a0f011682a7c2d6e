// One request out of bytes as they come, whatever their pieces.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "serve/http/message.h"

namespace hearth::serve {

struct HttpLimits {
  std::size_t head_bytes = std::size_t{64} << 10;
  std::size_t target_bytes = std::size_t{8} << 10;
  std::size_t body_bytes = std::size_t{32} << 20;
};

class RequestParser {
 public:
  enum class State { kHead, kBody, kDone, kBad };

  explicit RequestParser(const HttpLimits& limits);
  ~RequestParser();

  // Takes bytes from the beginning of `bytes` and says how many. Stops behind
  // the head, so that it can be looked at first; call again with the rest until
  // the state is kDone or nothing is taken.
  std::size_t Feed(std::string_view bytes);

  State state() const { return state_; }
  bool begun() const { return begun_; }
  // From kBody on; the body is complete in kDone.
  HttpRequest& request() { return request_; }
  const HttpProblem& problem() const { return problem_; }  // kBad
  bool keep_alive() const;        // the connection may serve another request
  bool expects_continue() const;  // the client waits for a word first
  bool chunks() const;            // the client can read a chunked answer

 private:
  struct Beast;
  std::size_t FeedHead(std::string_view bytes);
  std::size_t FeedBody(std::string_view bytes);
  void ReadHead();
  void Refuse(HttpProblem problem);

  const HttpLimits limits_;
  State state_ = State::kHead;
  bool begun_ = false;
  std::string head_;  // what has come of it
  std::string rest_;  // of a chunk's head, which must be whole
  HttpRequest request_;
  HttpProblem problem_;
  const std::unique_ptr<Beast> beast_;
};

}  // namespace hearth::serve
