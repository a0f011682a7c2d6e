// All requests come here; each goes where it belongs.
#pragma once

#include <atomic>
#include <memory>
#include <string>

#include "serve/access/gate.h"
#include "serve/app/call.h"
#include "serve/app/core.h"
#include "serve/http/message.h"

namespace hearth::serve {

class App final : public Handler {
 public:
  enum class State { kLoading, kServing, kStopping };

  explicit App(const Gate& gate) : gate_(gate) {}

  // `core` outlives every request.
  void Serve(Core& core);
  void Stop() { state_.store(State::kStopping); }

  std::optional<HttpAnswer> Refuse(const HttpRequest& head) override;
  void Handle(HttpRequest request, std::shared_ptr<Reply> reply) override;
  HttpAnswer Problem(const HttpRequest& head,
                     const HttpProblem& problem) override;

 private:
  HttpAnswer Health() const;
  void Preflight(Call call);
  void Route(Core& core, Call call);
  void Tell(Call& call, HttpAnswer answer);

  const Gate& gate_;
  std::atomic<State> state_{State::kLoading};
  std::atomic<Core*> core_{nullptr};
};

// A new X-Request-Id.
std::string NewRequestId();

}  // namespace hearth::serve
