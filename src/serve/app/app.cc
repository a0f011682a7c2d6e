#include "serve/app/app.h"

#include <random>

#include "base/mutex.h"
#include "serve/page/assets.h"
#include "serve/routes/routes.h"
#include "serve/turn/turn.h"
#include "serve/turn/turn_record.h"

namespace hearth::serve {
namespace {

WireError NotReady(bool stopping) {
  WireError error;
  error.status = 503;
  error.type = "overloaded_error";
  error.message = stopping ? "the server is stopping"
                           : "the model is being opened; try again soon";
  return error;
}

// A file of the page, or that the browser has it already.
HttpAnswer PageFile(const PageAsset& asset, const HttpRequest& request) {
  HttpAnswer answer;
  for (const auto& [name, value] : PageHeaders()) {
    answer.headers.push_back({std::string(name), std::string(value)});
  }
  answer.headers.push_back({"ETag", asset.etag});
  answer.content_type = asset.content_type;
  if (request.Header("if-none-match") == asset.etag) {
    answer.status = 304;
    return answer;
  }
  answer.body = asset.bytes;
  return answer;
}

}  // namespace

std::string NewRequestId() {
  static Mutex mutex;
  static std::mt19937_64 random{std::random_device{}()};
  const MutexLock lock(mutex);
  char text[40];
  std::snprintf(text, sizeof(text), "req_%016llx%08llx",
                static_cast<unsigned long long>(random()),
                static_cast<unsigned long long>(random() >> 32));
  return text;
}

void App::Serve(Core& core) {
  core_.store(&core);
  State loading = State::kLoading;
  state_.compare_exchange_strong(loading, State::kServing);
}

std::optional<HttpAnswer> App::Refuse(const HttpRequest& head) {
  const Dialect words = WordsOf(head.path);
  const auto refuse = [&](const WireError& error) {
    const std::string id = NewRequestId();
    HttpAnswer answer = ErrorAnswer(words, error, id);
    answer.headers.push_back({"X-Request-Id", id});
    return answer;
  };
  if (const auto error = gate_.Check(head)) return refuse(*error);
  const std::string_view coding = head.Header("content-encoding");
  if (!coding.empty() && !SameName(coding, "identity")) {
    WireError error;
    error.status = 415;
    error.message = "the body is compressed; send it as it is";
    return refuse(error);
  }
  return std::nullopt;
}

HttpAnswer App::Problem(const HttpRequest& head, const HttpProblem& problem) {
  WireError error;
  error.status = problem.status;
  error.type =
      problem.status >= 500 ? "overloaded_error" : "invalid_request_error";
  error.message = problem.message;
  const std::string id = NewRequestId();
  HttpAnswer answer = ErrorAnswer(WordsOf(head.path), error, id);
  answer.headers.push_back({"X-Request-Id", id});
  return answer;
}

HttpAnswer App::Health() const {
  const State state = state_.load();
  const char* name = state == State::kServing    ? "ok"
                     : state == State::kStopping ? "stopping"
                                                 : "loading";
  HttpAnswer answer =
      JsonAnswer({{"status", name}}, state == State::kServing ? 200 : 503);
  if (answer.status == 503) answer.headers.push_back({"Retry-After", "2"});
  return answer;
}

void App::Handle(HttpRequest request, std::shared_ptr<Reply> reply) {
  Call call;
  call.http = std::move(request);
  call.reply = std::move(reply);
  call.id = NewRequestId();
  call.headers.push_back({"X-Request-Id", call.id});
  if (call.http.path.starts_with("/v1/messages")) {
    call.headers.push_back({"request-id", call.id});
  }
  const std::string origin = gate_.ForeignOrigin(call.http);
  if (!origin.empty()) {
    call.headers.push_back({"Access-Control-Allow-Origin", origin});
    call.headers.push_back({"Access-Control-Expose-Headers", "*"});
    call.headers.push_back({"Vary", "Origin"});
    if (call.http.method == "OPTIONS") return Preflight(std::move(call));
  }
  const std::string& path = call.http.path;
  if (path == "/health" || path == "/v1/health") return Tell(call, Health());
  const PageAsset* asset = FindPageAsset(path);
  if (asset != nullptr &&
      (call.http.method == "GET" || call.http.method == "HEAD")) {
    return Tell(call, PageFile(*asset, call.http));
  }
  Core* core = core_.load();
  if (state_.load() != State::kServing || core == nullptr) {
    return Tell(call, ErrorAnswer(WordsOf(path),
                                  NotReady(state_.load() == State::kStopping),
                                  call.id));
  }
  call.client = gate_.ClientOf(call.http);
  call.space = gate_.SpaceOf(call.client);
  Route(*core, std::move(call));
}

void App::Preflight(Call call) {
  HttpAnswer answer;
  answer.status = 204;
  answer.content_type.clear();
  answer.headers = {
      {"Access-Control-Allow-Methods", "GET, POST, DELETE"},
      {"Access-Control-Allow-Headers",
       std::string(call.http.Header("access-control-request-headers"))},
      {"Access-Control-Max-Age", "600"}};
  Tell(call, std::move(answer));
}

void App::Tell(Call& call, HttpAnswer answer) {
  answer.headers.insert(answer.headers.end(), call.headers.begin(),
                        call.headers.end());
  call.reply->Whole(std::move(answer));
}

void App::Route(Core& core, Call call) {
  const std::string path = call.http.path;
  const auto dialect = DialectOf(path);
  if (dialect.has_value() && call.http.method == "POST") {
    return StartTurn(core, std::move(call), *dialect);
  }
  if (path == "/hearth/v1/events" && call.http.method == "GET") {
    return core.page->Watch(call.reply, call.headers);
  }
  const FoundRoute found = FindRoute(call.http.method, path);
  if (found.found == Found::kRoute) {
    core.workers->Do(
        [this, &core, route = found.route, call = std::move(call)]() mutable {
          HttpAnswer answer = route->answer(core, call);
          WriteRecord(core, call, answer.status);
          Tell(call, std::move(answer));
        });
    return;
  }
  WireError error;
  error.status = 404;
  error.type = "not_found_error";
  error.message = "no such path here: " + path;
  const std::string allowed = dialect.has_value() ? "POST" : found.allowed;
  if (!allowed.empty()) {
    error.status = 405;
    error.type = "invalid_request_error";
    error.message = path + " takes " + allowed;
  }
  HttpAnswer answer = ErrorAnswer(WordsOf(path), error, call.id);
  if (!allowed.empty()) answer.headers.push_back({"Allow", allowed});
  WriteRecord(core, call, error.status);
  Tell(call, std::move(answer));
}

}  // namespace hearth::serve
