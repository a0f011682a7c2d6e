// Answers on their way out, and the Reply that any thread gives them through.
#include <boost/asio/post.hpp>
#include <boost/asio/write.hpp>
#include <utility>

#include "serve/http/tcp_connection.h"

namespace hearth::serve {
namespace {

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

}  // namespace

std::shared_ptr<Reply> MakeReply(std::shared_ptr<TcpConnection> connection,
                                 int answer) {
  return std::make_shared<Stream>(std::move(connection), answer);
}

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
  started_ = over_ = false;
  outbox_.ForgetFull();
  watch_ = {};
  Whole(answer_, answer);
  Read();
}

void TcpConnection::Whole(int answer, HttpAnswer whole) {
  if (!Current(answer) || started_ || over_) return;
  started_ = true;
  outbox_.Add(ResponseHead(whole.status, whole.content_type, whole.headers,
                           BodyEnd::kLength, whole.body.size(), keep_alive_));
  if (!head_only_) outbox_.Add(whole.body);
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
  outbox_.Add(
      ResponseHead(status, content_type, headers, end_, 0, keep_alive_));
  Hush(watch_.quiet_first_ms);
  Write();
}

void TcpConnection::Send(int answer, std::string bytes) {
  if (!Current(answer) || !started_ || over_ || bytes.empty()) return;
  if (!head_only_) {
    outbox_.Add(end_ == BodyEnd::kChunks ? Chunk(bytes) : bytes);
  }
  Hush(watch_.quiet_every_ms);
  WatchFull();
  Write();
}

void TcpConnection::End(int answer) {
  if (!Current(answer) || over_) return;
  if (!started_) return Shut();
  if (end_ == BodyEnd::kChunks && !head_only_) outbox_.Add(kLastChunk);
  over_ = true;
  Hush(0);
  Write();
}

void TcpConnection::Drop(int answer) {
  if (Current(answer) && !over_) Shut();
}

void TcpConnection::Write() {
  if (phase_ == Phase::kClosed || outbox_.writes()) return;
  if (!outbox_.Begin()) {
    if (phase_ == Phase::kAnswer && over_) Finish();
    return;
  }
  WriteSome();
}

void TcpConnection::WriteSome() {
  if (phase_ == Phase::kAnswer) ExpireIn(options_.times.write_ms);
  socket_.async_write_some(
      asio::buffer(outbox_.left()),
      [self = shared_from_this()](const error_code& error, std::size_t n) {
        self->OnWritten(error, n);
      });
}

void TcpConnection::OnWritten(const error_code& error, std::size_t n) {
  if (phase_ == Phase::kClosed) return;
  if (error) return Gone();
  outbox_.Took(n);
  WatchFull();
  if (outbox_.writes()) return WriteSome();
  if (phase_ == Phase::kAnswer && outbox_.empty()) deadline_.Cancel();
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
    ExpireIn(2000);
    Read();
    return;
  }
  NextRequest();
}

void TcpConnection::WatchFull() {
  const auto turned = outbox_.Turned();
  if (turned.has_value() && watch_.full) watch_.full(*turned);
}

}  // namespace hearth::serve
