// Requests as they come, and how long whoever sends or reads may take.
#include "serve/http/connection.h"

#include <algorithm>
#include <utility>

#include "serve/http/tcp_connection.h"

namespace hearth::serve {
namespace {

using std::chrono::milliseconds;

// What a client may send ahead while its request is answered.
constexpr std::size_t kAheadMax = std::size_t{64} << 10;

}  // namespace

// --- Reading ----------------------------------------------------------------

void TcpConnection::NextRequest() {
  parser_ = std::make_unique<RequestParser>(options_.limits);
  phase_ = Phase::kIdle;
  ExpireIn(options_.times.idle_ms);
  Advance();
}

void TcpConnection::Read() {
  if (reading_ || ended_input_ || phase_ == Phase::kClosed) return;
  if (phase_ == Phase::kAnswer && inbox_.size() >= kAheadMax) return;
  reading_ = true;
  socket_.async_read_some(
      asio::buffer(buffer_),
      [self = shared_from_this()](const error_code& error, std::size_t n) {
        self->OnRead(error, n);
      });
}

void TcpConnection::OnRead(const error_code& error, std::size_t n) {
  reading_ = false;
  if (phase_ == Phase::kClosed) return;
  if (error) {
    ended_input_ = true;
    if (phase_ != Phase::kAnswer) return Shut();
    if (over_) return;
    if (error != asio::error::eof) return Gone();
    // A client that sends no more has left, or will read what is nearly done:
    // nothing tells the two apart. What takes long is told to stop.
    const auto gone = std::exchange(watch_.gone, nullptr);
    if (gone) gone();
    return;
  }
  if (lingering_) return Read();  // of a refused request: read past
  inbox_.append(buffer_.data(), n);
  if (phase_ == Phase::kBody) body_bytes_ += n;
  if (phase_ == Phase::kAnswer) return Read();
  Advance();
}

// Gives the parser what there is.
void TcpConnection::Advance() {
  while (phase_ != Phase::kAnswer && phase_ != Phase::kClosed) {
    const std::size_t taken = parser_->Feed(inbox_);
    inbox_.erase(0, taken);
    if (phase_ == Phase::kIdle && parser_->begun()) {
      phase_ = Phase::kHead;
      ExpireIn(options_.times.head_ms);
    }
    const RequestParser::State state = parser_->state();
    if (state == RequestParser::State::kBad) return Refuse(parser_->problem());
    if (state != RequestParser::State::kHead && phase_ == Phase::kHead &&
        !Admit()) {
      return;
    }
    if (state == RequestParser::State::kDone) return HandOver();
    if (inbox_.empty() || taken == 0) break;
  }
  Read();
}

// The head is complete: may the body come?
bool TcpConnection::Admit() {
  const HttpRequest& head = parser_->request();
  if (const std::string* expect = head.Find("expect");
      expect != nullptr && !SameName(*expect, "100-continue")) {
    Refuse({417, "no such expectation is known"});
    return false;
  }
  phase_ = Phase::kBody;
  parser_->request().peer = peer_;
  if (const auto refusal = handler_.Refuse(head)) {
    Answer(*refusal,
           /*keep_alive=*/parser_->state() == RequestParser::State::kDone &&
               parser_->keep_alive());
    return false;
  }
  body_since_ = Alarm::Clock::now();
  body_bytes_ = inbox_.size();
  Expire(body_since_ + milliseconds(options_.times.body_ms));
  if (parser_->expects_continue() && inbox_.empty()) {
    outbox_.Add("HTTP/1.1 100 Continue\r\n\r\n");
    Write();
  }
  return true;
}

void TcpConnection::HandOver() {
  ++answer_;
  phase_ = Phase::kAnswer;
  keep_alive_ = parser_->keep_alive() && !closing_;
  end_ = parser_->chunks() ? BodyEnd::kChunks : BodyEnd::kClose;
  head_only_ = parser_->request().method == "HEAD";
  started_ = over_ = false;
  outbox_.ForgetFull();
  watch_ = {};
  deadline_.Cancel();
  Read();  // to see the client leave
  handler_.Handle(std::move(parser_->request()),
                  MakeReply(shared_from_this(), answer_));
}

void TcpConnection::Refuse(const HttpProblem& problem) {
  Answer(handler_.Problem(parser_->request(), problem), /*keep_alive=*/false);
}

// --- Time -------------------------------------------------------------------

void TcpConnection::Expire(Alarm::Clock::time_point at) {
  deadline_.Set(at, [self = shared_from_this()] { self->OnDeadline(); });
}

void TcpConnection::OnDeadline() {
  if (phase_ == Phase::kClosed) return;
  switch (phase_) {
    case Phase::kHead:
      return Refuse({408, "the head took longer than " +
                              std::to_string(options_.times.head_ms / 1000) +
                              " s"});
    case Phase::kBody: {
      const milliseconds earned(1000 * body_bytes_ /
                                std::max(options_.times.body_bytes_per_s, 1));
      const auto end =
          body_since_ + milliseconds(options_.times.body_ms) + earned;
      if (end > Alarm::Clock::now()) return Expire(end);
      return Refuse({408, "the body came too slowly"});
    }
    case Phase::kAnswer:
      // Nothing was taken for too long, or a refused client does not leave.
      return Gone();
    default:
      return Shut();
  }
}

void TcpConnection::Hush(int ms) {
  if (ms <= 0 || over_ || !watch_.quiet) return quiet_.Cancel();
  quiet_.Set(Alarm::Clock::now() + milliseconds(ms),
             [self = shared_from_this(), answer = answer_] {
               if (!self->Current(answer) || self->over_) return;
               self->Hush(self->watch_.quiet_every_ms);
               if (const auto quiet = self->watch_.quiet) quiet();
             });
}

// --- The end ----------------------------------------------------------------

void TcpConnection::Watch(int answer, ReplyWatch watch) {
  if (!Current(answer)) {
    if (watch.gone) watch.gone();
    return;
  }
  watch_ = std::move(watch);
  Hush(watch_.quiet_first_ms);
  if (ended_input_) {
    const auto gone = std::exchange(watch_.gone, nullptr);
    if (gone) gone();
  }
  if (outbox_.full() && watch_.full) watch_.full(true);
}

void TcpConnection::Gone() {
  const auto gone = std::move(watch_.gone);
  Shut();
  if (gone) gone();
}

void TcpConnection::Close(bool now) {
  closing_ = true;
  if (now) return Gone();
  if (phase_ == Phase::kAnswer) {
    if (!started_) keep_alive_ = false;
    return;
  }
  Shut();
}

void TcpConnection::Shut() {
  if (phase_ == Phase::kClosed) return;
  phase_ = Phase::kClosed;
  const auto watch = std::move(watch_);
  watch_ = {};
  error_code ignored;
  deadline_.Cancel();
  quiet_.Cancel();
  socket_.close(ignored);
  if (watch.gone && !over_) watch.gone();
  if (ended_) ended_(this);
}

std::shared_ptr<Connection> MakeConnection(
    asio::ip::tcp::socket socket, const HttpOptions& options, Handler& handler,
    std::function<void(Connection*)> ended) {
  return std::make_shared<TcpConnection>(std::move(socket), options, handler,
                                         std::move(ended));
}

}  // namespace hearth::serve
