#include "serve/schedule/engine_backend.h"

#include <chrono>
#include <utility>

namespace hearth::serve {
namespace {

struct FoundPrefix final : Found {
  explicit FoundPrefix(PrefixMatch found) : match(std::move(found)) {}
  PrefixMatch match;
};

class SessionSequence final : public Sequence {
 public:
  explicit SessionSequence(std::unique_ptr<Session> session)
      : session_(std::move(session)) {}

  int Held(std::span<const std::int32_t> tokens) override {
    return session_->Held(tokens);
  }
  Result<SyncReport> Attach(std::span<const std::int32_t> tokens,
                            std::unique_ptr<Found> found,
                            std::span<const int> marks) override {
    if (found == nullptr) return session_->Attach(tokens, {}, marks);
    return session_->Attach(
        tokens, std::move(static_cast<FoundPrefix&>(*found).match), marks);
  }
  int NextStop() override { return session_->NextStop(); }
  bool AddStop(int n_tokens) override { return session_->AddStop(n_tokens); }
  Result<void> Reserve(int n_tokens, Relief relief) override {
    return session_->Reserve(n_tokens, relief);
  }
  Result<std::unique_ptr<Generation>> Begin(
      const GenerateOptions& options,
      const Session::OnToken& on_token) override {
    return session_->Begin(options, on_token, nullptr);
  }
  Result<std::unique_ptr<Sequence>> Fork() override {
    HEARTH_ASSIGN(auto fork, session_->Fork());
    return std::unique_ptr<Sequence>(
        std::make_unique<SessionSequence>(std::move(fork)));
  }
  bool TryPersist(bool rests) override { return session_->TryPersist(rests); }
  void Rest() override { session_->Rest(); }
  std::vector<std::int32_t> tokens() override { return session_->tokens(); }
  int n_tokens() override { return session_->n_tokens(); }
  KvReport Usage() override { return session_->Usage(); }

  Session* session() { return session_.get(); }

 private:
  const std::unique_ptr<Session> session_;
};

class EngineBackend final : public Backend {
 public:
  explicit EngineBackend(Engine& engine) : engine_(engine) {}

  Result<std::unique_ptr<Sequence>> NewSequence(
      const std::string& key_space) override {
    HEARTH_ASSIGN(auto session, engine_.NewSession({.key_space = key_space,
                                                    .save_answers = true}));
    return std::unique_ptr<Sequence>(
        std::make_unique<SessionSequence>(std::move(session)));
  }
  std::unique_ptr<Found> Find(std::span<const std::int32_t> tokens, int n_held,
                              const std::string& key_space) override {
    return std::make_unique<FoundPrefix>(
        engine_.Match(tokens, n_held, key_space));
  }
  Result<void> Step(std::span<const SequenceStep> steps) override {
    std::vector<SessionStep> of_sessions;
    for (const SequenceStep& step : steps) {
      of_sessions.push_back(
          {static_cast<SessionSequence*>(step.sequence)->session(), step.tokens,
           step.want});
    }
    return engine_.Step(of_sessions);
  }
  bool has_store() override {
    const EngineOptions& options = engine_.options();
    return !options.prompt_cache_dir.empty() ||
           !options.prompt_cache_file.empty();
  }
  std::uint64_t waiting_bytes() override {
    return engine_.Saves().waiting_bytes;
  }
  double NowMs() override {
    return std::chrono::duration<double, std::milli>(
               std::chrono::steady_clock::now().time_since_epoch())
        .count();
  }
  int block_tokens() override { return engine_.options().block_tokens; }
  bool has_states() override { return engine_.carries_states(); }

 private:
  Engine& engine_;
};

}  // namespace

std::unique_ptr<Backend> MakeEngineBackend(Engine& engine) {
  return std::make_unique<EngineBackend>(engine);
}

}  // namespace hearth::serve
