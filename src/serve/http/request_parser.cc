#include "serve/http/request_parser.h"

#include <algorithm>
#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>

#include "serve/http/head_check.h"

namespace hearth::serve {
namespace {

namespace http = boost::beast::http;

HttpProblem ProblemOf(const boost::system::error_code& error,
                      const HttpLimits& limits) {
  if (error == http::error::body_limit) {
    return {413, "the body is longer than " +
                     std::to_string(limits.body_bytes) + " bytes"};
  }
  return {400, "malformed request: " + error.message()};
}

std::string Text(boost::beast::string_view view) {
  return std::string(view.data(), view.size());
}

}  // namespace

struct RequestParser::Beast {
  http::request_parser<http::string_body> parser;
};

RequestParser::RequestParser(const HttpLimits& limits)
    : limits_(limits), beast_(std::make_unique<Beast>()) {
  // The head's length is counted here, where its end is looked for.
  beast_->parser.header_limit(static_cast<std::uint32_t>(limits.head_bytes) +
                              16);
  beast_->parser.body_limit(limits.body_bytes);
}

RequestParser::~RequestParser() = default;

std::size_t RequestParser::Feed(std::string_view bytes) {
  switch (state_) {
    case State::kHead:
      return FeedHead(bytes);
    case State::kBody:
      return FeedBody(bytes);
    default:
      return 0;
  }
}

std::size_t RequestParser::FeedHead(std::string_view bytes) {
  std::size_t taken = 0;
  // An empty line before a request is forgiven (RFC 9112, 2.2).
  while (head_.empty() && taken < bytes.size() &&
         (bytes[taken] == '\r' || bytes[taken] == '\n')) {
    ++taken;
  }
  bytes.remove_prefix(taken);
  if (bytes.empty()) return taken;
  begun_ = true;
  const std::size_t before = head_.size();
  const std::size_t room =
      limits_.head_bytes - std::min(before, limits_.head_bytes);
  head_.append(bytes.substr(0, room));
  const std::size_t end = head_.find("\r\n\r\n", before < 3 ? 0 : before - 3);
  if (end == std::string::npos) {
    if (head_.size() >= limits_.head_bytes) {
      Refuse({431, "the head is longer than " +
                       std::to_string(limits_.head_bytes) + " bytes"});
    }
    return taken + (head_.size() - before);
  }
  head_.resize(end + 4);
  taken += head_.size() - before;
  ReadHead();
  return taken;
}

void RequestParser::ReadHead() {
  if (auto problem = CheckHead(head_, limits_.target_bytes)) {
    return Refuse(*std::move(problem));
  }
  auto& parser = beast_->parser;
  boost::system::error_code error;
  parser.put(boost::asio::buffer(head_), error);
  // Also of a request that is refused: its path says in whose words.
  const auto& message = parser.get();
  request_.method = Text(message.method_string());
  const std::string target = Text(message.target());
  const std::size_t mark = target.find('?');
  request_.path = target.substr(0, mark);
  if (mark != std::string::npos) request_.query = target.substr(mark + 1);
  for (const auto& field : message.base()) {
    request_.headers.push_back(
        {Text(field.name_string()), Text(field.value())});
  }
  head_.clear();
  if (!parser.is_header_done()) return Refuse(ProblemOf(error, limits_));
  state_ = parser.is_done() ? State::kDone : State::kBody;
}

std::size_t RequestParser::FeedBody(std::string_view bytes) {
  auto& parser = beast_->parser;
  const std::size_t held = rest_.size();
  if (held > 0) {
    rest_.append(bytes);
    bytes = rest_;
  }
  std::size_t used = 0;
  // The shortest end of chunks, "0" and two line ends, has 5 bytes; Beast 1.74
  // asserts that it is never shown the first 4 of them alone.
  const std::size_t least = parser.chunked() ? 5 : 1;
  while (!parser.is_done() && bytes.size() - used >= least) {
    boost::system::error_code error;
    const std::size_t n = parser.put(
        boost::asio::buffer(bytes.data() + used, bytes.size() - used), error);
    used += n;
    if (error && error != http::error::need_more) {
      Refuse(ProblemOf(error, limits_));
      return bytes.size() - held;
    }
    if (n == 0) break;
  }
  if (parser.is_done()) {
    request_.body = std::move(parser.get().body());
    state_ = State::kDone;
    // What was held back is behind what was used, or part of it.
    return used - std::min(held, used);
  }
  const std::size_t taken = bytes.size() - held;
  std::string rest(bytes.substr(used));
  rest_ = std::move(rest);
  // A chunk's head with extensions, and trailers, are heads too.
  if (rest_.size() > limits_.head_bytes) {
    Refuse({400, "a chunk's head is longer than " +
                     std::to_string(limits_.head_bytes) + " bytes"});
  }
  return taken;
}

void RequestParser::Refuse(HttpProblem problem) {
  problem_ = std::move(problem);
  state_ = State::kBad;
}

bool RequestParser::keep_alive() const {
  return state_ == State::kDone && beast_->parser.get().keep_alive();
}

bool RequestParser::expects_continue() const {
  return state_ == State::kBody &&
         SameName(request_.Header("expect"), "100-continue");
}

bool RequestParser::chunks() const {
  return beast_->parser.get().version() >= 11;
}

}  // namespace hearth::serve
