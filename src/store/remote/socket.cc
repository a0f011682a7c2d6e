#include "store/remote/socket.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <utility>

#include "base/file.h"

namespace hearth {
namespace {

constexpr std::size_t kWriteBytesMax = std::size_t{1} << 20;

int MillisecondsUntil(Deadline deadline) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(
      deadline - std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<long long>(left.count(), 0, 3'600'000));
}

Error TooSlow(const char* what) {
  return {Code::kCancelled,
          std::string(what) + " took longer than its deadline"};
}

Result<void> WaitFor(int fd, short events, Deadline deadline,
                     const char* what) {
  while (true) {
    struct pollfd entry = {fd, events, 0};
    const int n = ::poll(&entry, 1, MillisecondsUntil(deadline));
    if (n > 0) return {};
    if (n == 0) return TooSlow(what);
    if (errno != EINTR) return {Code::kIo, ErrnoText(errno)};
  }
}

// A look-up that can be left behind when the name server does not answer.
struct NameRequest {
  std::string host, port;
  struct addrinfo hints = {};
  struct gaicb request = {};
  ~NameRequest() {
    if (request.ar_result != nullptr) ::freeaddrinfo(request.ar_result);
  }
};

Result<std::unique_ptr<NameRequest>> LookUp(const RemoteUrl& url,
                                            Deadline deadline) {
  auto name = std::make_unique<NameRequest>();
  name->host = url.host;
  name->port = std::to_string(url.port);
  name->hints.ai_socktype = SOCK_STREAM;
  name->request.ar_name = name->host.c_str();
  name->request.ar_service = name->port.c_str();
  name->request.ar_request = &name->hints;
  struct gaicb* list[] = {&name->request};
  if (::getaddrinfo_a(GAI_NOWAIT, list, 1, nullptr) != 0) {
    return {Code::kIo, "its name cannot be looked up"};
  }
  int state;
  while ((state = ::gai_error(&name->request)) == EAI_INPROGRESS) {
    const int ms = MillisecondsUntil(deadline);
    if (ms == 0) {
      // A request that is being worked on cannot be taken back: it is given up,
      // a few hundred bytes, rather than waited for.
      if (::gai_cancel(&name->request) == EAI_NOTCANCELED) (void)name.release();
      return TooSlow("looking up its name");
    }
    const struct timespec wait = {ms / 1000, (ms % 1000) * 1'000'000L};
    (void)::gai_suspend(list, 1, &wait);
  }
  if (state != 0) return {Code::kIo, ::gai_strerror(state)};
  return name;
}

Result<int> ConnectTo(const struct addrinfo& address, Deadline deadline) {
  const int fd = ::socket(address.ai_family,
                          SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return {Code::kIo, ErrnoText(errno)};
  if (::connect(fd, address.ai_addr, address.ai_addrlen) != 0 &&
      errno != EINPROGRESS) {
    const int number = errno;
    ::close(fd);
    return {Code::kIo, ErrnoText(number)};
  }
  const auto ready = WaitFor(fd, POLLOUT, deadline, "connecting");
  int number = 0;
  socklen_t length = sizeof(number);
  if (ready.ok()) ::getsockopt(fd, SOL_SOCKET, SO_ERROR, &number, &length);
  if (!ready.ok() || number != 0) {
    ::close(fd);
    if (!ready.ok()) return ready.error();
    return {Code::kIo, ErrnoText(number)};
  }
  const int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return fd;
}

// OpenSSL writes without MSG_NOSIGNAL: while this lives, a peer that has gone
// is an error and no signal.
class NoPipeSignal {
 public:
  NoPipeSignal() {
    ::sigemptyset(&pipe_);
    ::sigaddset(&pipe_, SIGPIPE);
    sigset_t pending;
    ::sigpending(&pending);
    was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
    ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
  }
  ~NoPipeSignal() {
    const struct timespec none = {};
    if (!was_pending_) (void)::sigtimedwait(&pipe_, nullptr, &none);
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }
  NoPipeSignal(const NoPipeSignal&) = delete;
  NoPipeSignal& operator=(const NoPipeSignal&) = delete;

 private:
  sigset_t pipe_, before_;
  bool was_pending_;
};

std::string TlsWords() {
  char text[256] = "TLS failed";
  const unsigned long number = ::ERR_get_error();
  if (number != 0) ::ERR_error_string_n(number, text, sizeof(text));
  ::ERR_clear_error();
  return text;
}

}  // namespace

struct Socket::State {
  int fd = -1;
  SSL_CTX* context = nullptr;
  SSL* ssl = nullptr;  // null: plain

  ~State() {
    SSL_free(ssl);
    SSL_CTX_free(context);
    if (fd >= 0) ::close(fd);
  }

  Result<void> StartTls(const std::string& host, Deadline deadline) {
    context = SSL_CTX_new(TLS_client_method());
    if (context == nullptr) return {Code::kIo, TlsWords()};
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, nullptr);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE |
                                  SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    ssl = SSL_CTX_set_default_verify_paths(context) == 1 ? SSL_new(context)
                                                         : nullptr;
    if (ssl == nullptr || SSL_set_fd(ssl, fd) != 1) {
      return {Code::kIo, TlsWords()};
    }
    X509_VERIFY_PARAM* verify = SSL_get0_param(ssl);
    const bool is_address = X509_VERIFY_PARAM_set1_ip_asc(verify, host.c_str());
    if (!is_address && (SSL_set1_host(ssl, host.c_str()) != 1 ||
                        SSL_set_tlsext_host_name(ssl, host.c_str()) != 1)) {
      return {Code::kIo, TlsWords()};
    }
    const NoPipeSignal no_signal;
    while (true) {
      const int done = SSL_connect(ssl);
      if (done == 1) return {};
      HEARTH_TRY(WaitForTls(done, deadline, "the TLS handshake"));
    }
  }

  Result<void> WaitForTls(int result, Deadline deadline, const char* what) {
    switch (SSL_get_error(ssl, result)) {
      case SSL_ERROR_WANT_READ:
        return WaitFor(fd, POLLIN, deadline, what);
      case SSL_ERROR_WANT_WRITE:
        return WaitFor(fd, POLLOUT, deadline, what);
      case SSL_ERROR_ZERO_RETURN:
        return {Code::kIo, "the connection was closed"};
      default:
        return {Code::kIo, TlsWords()};
    }
  }
};

Socket::Socket(std::unique_ptr<State> state) : state_(std::move(state)) {}
Socket::~Socket() = default;
Socket::Socket(Socket&&) noexcept = default;

Result<Socket> Socket::Connect(const RemoteUrl& url, Deadline deadline) {
  HEARTH_ASSIGN(const auto name, LookUp(url, deadline));
  Result<int> fd(Code::kIo, "its name has no address");
  for (const struct addrinfo* address = name->request.ar_result;
       address != nullptr && !fd.ok(); address = address->ai_next) {
    fd = ConnectTo(*address, deadline);
    if (!fd.ok() && fd.error().code == Code::kCancelled) break;
  }
  if (!fd.ok()) return fd.error();
  auto state = std::make_unique<State>();
  state->fd = *fd;
  if (url.tls) HEARTH_TRY(state->StartTls(url.host, deadline));
  return Socket(std::move(state));
}

Result<void> Socket::Write(ByteSpan bytes, Deadline deadline) {
  while (!bytes.empty()) {
    const std::size_t length = std::min(bytes.size(), kWriteBytesMax);
    std::size_t n = 0;
    if (state_->ssl != nullptr) {
      ::ERR_clear_error();
      const NoPipeSignal no_signal;
      const int done = SSL_write_ex(state_->ssl, bytes.data(), length, &n);
      if (done != 1) {
        HEARTH_TRY(state_->WaitForTls(done, deadline, "sending"));
        continue;
      }
    } else {
      const ssize_t sent =
          ::send(state_->fd, bytes.data(), length, MSG_NOSIGNAL);
      if (sent < 0) {
        if (errno == EINTR) continue;
        if (errno != EAGAIN) return {Code::kIo, ErrnoText(errno)};
        HEARTH_TRY(WaitFor(state_->fd, POLLOUT, deadline, "sending"));
        continue;
      }
      n = static_cast<std::size_t>(sent);
    }
    bytes = bytes.subspan(n);
  }
  return {};
}

Result<std::size_t> Socket::Read(std::span<std::byte> to, Deadline deadline) {
  while (true) {
    // Also for a peer that sends byte by byte, for ever.
    if (MillisecondsUntil(deadline) == 0) return TooSlow("the answer");
    if (state_->ssl != nullptr) {
      std::size_t n = 0;
      ::ERR_clear_error();
      const NoPipeSignal no_signal;
      const int done = SSL_read_ex(state_->ssl, to.data(), to.size(), &n);
      if (done == 1) return n;
      HEARTH_TRY(state_->WaitForTls(done, deadline, "the answer"));
      continue;
    }
    const ssize_t n = ::recv(state_->fd, to.data(), to.size(), 0);
    if (n > 0) return static_cast<std::size_t>(n);
    if (n == 0) return {Code::kIo, "the connection was closed"};
    if (errno == EINTR) continue;
    if (errno != EAGAIN) return {Code::kIo, ErrnoText(errno)};
    HEARTH_TRY(WaitFor(state_->fd, POLLIN, deadline, "the answer"));
  }
}

}  // namespace hearth
