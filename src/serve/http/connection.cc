#include "serve/http/connection.h"

#include <algorithm>
#include <array>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <utility>

#include "serve/http/response_text.h"

namespace hearth::serve {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;
using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// What a client may send ahead while its request is answered.
constexpr std::size_t kAheadMax = std::size_t{64} << 10;

class Stream;

class TcpConnection final : public Connection,
                            public std::enable_shared_from_this<TcpConnection> {
 public:
  TcpConnection(asio::ip::tcp::socket socket, const HttpOptions& options,
                Handler& handler, std::function<void(Connection*)> ended)
      : socket_(std::move(socket)),
        deadline_(socket_.get_executor()),
        quiet_(socket_.get_executor()),
        options_(options),
        handler_(handler),
        ended_(std::move(ended)) {
    error_code ignored;
    const auto end = socket_.remote_endpoint(ignored);
    peer_ = end.address().to_string(ignored);
    socket_.set_option(asio::ip::tcp::no_delay(true), ignored);
  }

  void Begin() override { NextRequest(); }
  void Close(bool now) override;

  auto executor() { return socket_.get_executor(); }

  // What a Stream asks for; `answer` counts them, so that an old one's calls
  // have no effect.
  void Watch(int answer, ReplyWatch watch);
  void Whole(int answer, HttpAnswer whole);
  void Start(int answer, int status, const std::string& content_type,
             std::vector<HttpHeader> headers);
  void Send(int answer, std::string bytes);
  void End(int answer);
  void Drop(int answer);

 private:
  enum class Phase { kIdle, kHead, kBody, kAnswer, kClosed };

  // Reading.
  void NextRequest();
  void Read();
  void OnRead(const error_code& error, std::size_t n);
  void Advance();
  bool Admit();
  void HandOver();
  void Refuse(const HttpProblem& problem);

  // Writing.
  void Answer(const HttpAnswer& answer, bool keep_alive);
  void Write();
  void OnWritten(const error_code& error, std::size_t n);
  void Finish();
  void WatchFull();

  // Time.
  void Expire(Clock::time_point at);
  void OnDeadline();
  void Hush(int ms);
  void OnQuiet();

  void Gone();
  void Shut();
  bool Current(int answer) const {
    return phase_ == Phase::kAnswer && answer == answer_;
  }

  asio::ip::tcp::socket socket_;
  asio::steady_timer deadline_, quiet_;
  const HttpOptions& options_;
  Handler& handler_;
  std::function<void(Connection*)> ended_;
  std::string peer_;

  Phase phase_ = Phase::kIdle;
  std::unique_ptr<RequestParser> parser_;
  std::array<char, 16384> buffer_;
  std::string inbox_;  // read, not taken by the parser
  bool reading_ = false, ended_input_ = false;
  Clock::time_point body_since_;
  std::size_t body_bytes_ = 0;

  int answer_ = 0;
  ReplyWatch watch_;
  bool head_only_ = false, keep_alive_ = false, closing_ = false;
  bool started_ = false, over_ = false, full_ = false, lingering_ = false;
  BodyEnd end_ = BodyEnd::kLength;
  std::string waiting_, leaving_;  // to be written; being written
  std::size_t left_ = 0;           // of leaving_: gone out
};

// The answer to one request, for any thread.
class Stream final : public Reply {
 public:
  Stream(std::shared_ptr<TcpConnection> connection, int answer)
      : connection_(std::move(connection)), answer_(answer) {}
  ~Stream() override {
    Post([](TcpConnection& to, int answer) { to.Drop(answer); });
  }
  void Watch(ReplyWatch watch) override {
    Post([watch = std::move(watch)](TcpConnection& to, int answer) mutable {
      to.Watch(answer, std::move(watch));
    });
  }
  void Whole(HttpAnswer whole) override {
    Post([whole = std::move(whole)](TcpConnection& to, int answer) mutable {
      to.Whole(answer, std::move(whole));
    });
  }
  void Start(int status, const std::string& content_type,
             std::vector<HttpHeader> headers) override {
    Post([status, content_type, headers = std::move(headers)](
             TcpConnection& to, int answer) mutable {
      to.Start(answer, status, content_type, std::move(headers));
    });
  }
  void Send(std::string bytes) override {
    Post([bytes = std::move(bytes)](TcpConnection& to, int answer) mutable {
      to.Send(answer, std::move(bytes));
    });
  }
  void End() override {
    Post([](TcpConnection& to, int answer) { to.End(answer); });
  }

 private:
  template <typename Call>
  void Post(Call call) {
    asio::post(
        connection_->executor(),
        [connection = connection_, answer = answer_,
         call = std::move(call)]() mutable { call(*connection, answer); });
  }

  const std::shared_ptr<TcpConnection> connection_;
  const int answer_;
};

// --- Reading ----------------------------------------------------------------

void TcpConnection::NextRequest() {
  parser_ = std::make_unique<RequestParser>(options_.limits);
  phase_ = Phase::kIdle;
  Expire(Clock::now() + milliseconds(options_.times.idle_ms));
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
      Expire(Clock::now() + milliseconds(options_.times.head_ms));
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
  body_since_ = Clock::now();
  body_bytes_ = inbox_.size();
  Expire(body_since_ + milliseconds(options_.times.body_ms));
  if (parser_->expects_continue() && inbox_.empty()) {
    waiting_ += "HTTP/1.1 100 Continue\r\n\r\n";
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
  started_ = over_ = full_ = false;
  watch_ = {};
  deadline_.cancel();
  Read();  // to see the client leave
  handler_.Handle(std::move(parser_->request()),
                  std::make_shared<Stream>(shared_from_this(), answer_));
}

void TcpConnection::Refuse(const HttpProblem& problem) {
  Answer(handler_.Problem(parser_->request(), problem), /*keep_alive=*/false);
}

// --- Writing ----------------------------------------------------------------

// An answer that the connection makes itself.
void TcpConnection::Answer(const HttpAnswer& answer, bool keep_alive) {
  ++answer_;
  phase_ = Phase::kAnswer;
  keep_alive_ = keep_alive && !closing_;
  // What a refused client still sends is read and dropped, so that it gets to
  // read the answer instead of a reset.
  lingering_ = !keep_alive_;
  if (lingering_) inbox_.clear();
  head_only_ = parser_->request().method == "HEAD";
  started_ = over_ = full_ = false;
  watch_ = {};
  Whole(answer_, answer);
  Read();
}

void TcpConnection::Whole(int answer, HttpAnswer whole) {
  if (!Current(answer) || started_ || over_) return;
  started_ = true;
  waiting_ += ResponseHead(whole.status, whole.content_type, whole.headers,
                           BodyEnd::kLength, whole.body.size(), keep_alive_);
  if (!head_only_) waiting_ += whole.body;
  over_ = true;
  Hush(0);
  Write();
}

void TcpConnection::Start(int answer, int status,
                          const std::string& content_type,
                          std::vector<HttpHeader> headers) {
  if (!Current(answer) || started_ || over_) return;
  started_ = true;
  if (end_ == BodyEnd::kClose) keep_alive_ = false;
  waiting_ += ResponseHead(status, content_type, headers, end_, 0, keep_alive_);
  Hush(watch_.quiet_first_ms);
  Write();
}

void TcpConnection::Send(int answer, std::string bytes) {
  if (!Current(answer) || !started_ || over_ || bytes.empty()) return;
  if (!head_only_) {
    waiting_ += end_ == BodyEnd::kChunks ? Chunk(bytes) : bytes;
  }
  Hush(watch_.quiet_every_ms);
  WatchFull();
  Write();
}

void TcpConnection::End(int answer) {
  if (!Current(answer) || over_) return;
  if (!started_) return Shut();
  if (end_ == BodyEnd::kChunks && !head_only_) waiting_ += kLastChunk;
  over_ = true;
  Hush(0);
  Write();
}

void TcpConnection::Drop(int answer) {
  if (Current(answer) && !over_) Shut();
}

void TcpConnection::Write() {
  if (!leaving_.empty() || phase_ == Phase::kClosed) return;
  if (waiting_.empty()) {
    if (phase_ == Phase::kAnswer && over_) Finish();
    return;
  }
  leaving_.swap(waiting_);
  left_ = 0;
  if (phase_ == Phase::kAnswer) {
    Expire(Clock::now() + milliseconds(options_.times.write_ms));
  }
  socket_.async_write_some(
      asio::buffer(leaving_),
      [self = shared_from_this()](const error_code& error, std::size_t n) {
        self->OnWritten(error, n);
      });
}

void TcpConnection::OnWritten(const error_code& error, std::size_t n) {
  if (phase_ == Phase::kClosed) return;
  if (error) return Gone();
  left_ += n;
  WatchFull();
  if (left_ < leaving_.size()) {
    if (phase_ == Phase::kAnswer) {
      Expire(Clock::now() + milliseconds(options_.times.write_ms));
    }
    socket_.async_write_some(
        asio::buffer(leaving_.data() + left_, leaving_.size() - left_),
        [self = shared_from_this()](const error_code& again, std::size_t m) {
          self->OnWritten(again, m);
        });
    return;
  }
  leaving_.clear();
  left_ = 0;
  if (phase_ == Phase::kAnswer && waiting_.empty()) deadline_.cancel();
  Write();
}

// The answer is out.
void TcpConnection::Finish() {
  watch_ = {};
  if (!keep_alive_ || ended_input_ || closing_) {
    error_code ignored;
    socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
    if (ended_input_) return Shut();
    // The client closes when it has read; it gets a moment for that.
    lingering_ = true;
    inbox_.clear();
    Expire(Clock::now() + milliseconds(2000));
    Read();
    return;
  }
  NextRequest();
}

void TcpConnection::WatchFull() {
  const std::size_t held = waiting_.size() + leaving_.size() - left_;
  const bool now =
      full_ ? held > options_.stream_bytes / 4 : held > options_.stream_bytes;
  if (now == full_) return;
  full_ = now;
  if (watch_.full) watch_.full(full_);
}

// --- Time -------------------------------------------------------------------

void TcpConnection::Expire(Clock::time_point at) {
  deadline_.expires_at(at);
  deadline_.async_wait([self = shared_from_this()](const error_code& error) {
    if (!error) self->OnDeadline();
  });
}

void TcpConnection::OnDeadline() {
  if (phase_ == Phase::kClosed || deadline_.expiry() > Clock::now()) return;
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
      if (end > Clock::now()) return Expire(end);
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
  if (ms <= 0 || over_ || !watch_.quiet) {
    quiet_.cancel();
    return;
  }
  quiet_.expires_after(milliseconds(ms));
  quiet_.async_wait(
      [self = shared_from_this(), answer = answer_](const error_code& error) {
        if (!error && self->Current(answer)) self->OnQuiet();
      });
}

void TcpConnection::OnQuiet() {
  if (over_ || quiet_.expiry() > Clock::now()) return;
  Hush(watch_.quiet_every_ms);
  if (const auto quiet = watch_.quiet) quiet();
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
  if (full_ && watch_.full) watch_.full(true);
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
  deadline_.cancel();
  quiet_.cancel();
  socket_.close(ignored);
  if (watch.gone && !over_) watch.gone();
  if (ended_) ended_(this);
}

}  // namespace

std::shared_ptr<Connection> MakeConnection(
    asio::ip::tcp::socket socket, const HttpOptions& options, Handler& handler,
    std::function<void(Connection*)> ended) {
  return std::make_shared<TcpConnection>(std::move(socket), options, handler,
                                         std::move(ended));
}

}  // namespace hearth::serve
