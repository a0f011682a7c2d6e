// An App over a real engine of a tiny model, without sockets: requests are
// handed in, and a FakeReply has what came of them.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "hearth/dialogue.h"
#include "serve/app/app.h"
#include "testing/model_paths.h"

namespace hearth::serve {

// What a client's connection would have got.
class FakeReply final : public Reply {
 public:
  void Watch(ReplyWatch watch) override {
    const std::lock_guard lock(mutex_);
    watch_ = std::move(watch);
  }
  void Whole(HttpAnswer whole) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(over_) << "answered twice";
    status_ = whole.status;
    headers_ = std::move(whole.headers);
    body_ = std::move(whole.body);
    over_ = true;
    changed_.notify_all();
  }
  void Start(int status, const std::string&,
             std::vector<HttpHeader> headers) override {
    const std::lock_guard lock(mutex_);
    EXPECT_EQ(status_, 0) << "begun twice";
    status_ = status;
    headers_ = std::move(headers);
  }
  void Send(std::string bytes) override {
    const std::lock_guard lock(mutex_);
    EXPECT_FALSE(over_);
    body_ += bytes;
    changed_.notify_all();
  }
  void End() override {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }

  // Until the answer is over, or `text` has come.
  void AwaitEnd() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return over_; });
  }
  void AwaitText(const std::string& text) {
    std::unique_lock lock(mutex_);
    changed_.wait(
        lock, [&] { return over_ || body_.find(text) != std::string::npos; });
  }
  // What the sockets' thread would say.
  ReplyWatch watch() {
    const std::lock_guard lock(mutex_);
    return watch_;
  }
  int status() {
    const std::lock_guard lock(mutex_);
    return status_;
  }
  std::string body() {
    const std::lock_guard lock(mutex_);
    return body_;
  }
  std::string header(std::string_view name) {
    const std::lock_guard lock(mutex_);
    for (const HttpHeader& header : headers_) {
      if (SameName(header.name, name)) return header.value;
    }
    return "";
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  ReplyWatch watch_;
  int status_ = 0;
  bool over_ = false;
  std::vector<HttpHeader> headers_;
  std::string body_;
};

class AppUnderTest {
 public:
  // An empty template: the model is asked in plain text alone.
  explicit AppUnderTest(const std::string& template_path = {},
                        const SchedulerOptions& scheduling = {})
      : keys_(*KeyRing::Open("", "", [](const std::string&) {})),
        gate_({.bound = {"127.0.0.1"}}, *keys_),
        app(gate_) {
    auto engine = Engine::Open(
        {.model_path = kHfQwen2, .n_threads = 1, .context_tokens = 16384});
    EXPECT_TRUE(engine.ok()) << engine.error().message;
    core.engine = std::move(*engine);
    if (!template_path.empty()) {
      auto dialogue = Dialogue::Open(*core.engine, template_path);
      EXPECT_TRUE(dialogue.ok()) << dialogue.error().message;
      core.dialogue = std::move(*dialogue);
    } else {
      core.no_dialogue = "it has no chat template";
    }
    core.served.id = "tiny";
    core.served.context_tokens = 16384;
    core.metrics = Metrics::Make("");
    core.scheduling = scheduling;
    core.scheduler = Scheduler::Make(*core.engine, scheduling);
    core.later = [](int, const std::function<void()>&) {};
    core.n_connections = [] { return 1; };
    core.workers = std::make_unique<Workers>(2);
    core.page = std::make_unique<PageDesk>(core);
    steps_ = std::thread([this] { core.scheduler->Run(); });
  }
  ~AppUnderTest() {
    core.page->Stop();
    core.scheduler->Stop();
    steps_.join();
    core.workers.reset();
  }

  std::shared_ptr<FakeReply> Ask(const std::string& method,
                                 const std::string& path,
                                 const std::string& body = "") {
    HttpRequest request;
    request.method = method;
    request.path = path;
    request.headers = {{"Host", "127.0.0.1"}};
    request.body = body;
    auto reply = std::make_shared<FakeReply>();
    app.Handle(std::move(request), reply);
    return reply;
  }
  std::shared_ptr<FakeReply> Answer(const std::string& method,
                                    const std::string& path,
                                    const std::string& body = "") {
    auto reply = Ask(method, path, body);
    reply->AwaitEnd();
    return reply;
  }

 private:
  std::unique_ptr<KeyRing> keys_;
  Gate gate_;

 public:
  App app;
  Core core;

 private:
  std::thread steps_;
};

}  // namespace hearth::serve
