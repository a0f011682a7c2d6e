// The inside of a Session: a history, and the order in which its parts act on
// it. The parts know nothing of each other: SavePolicy decides what is stored,
// RamBudget who may grow, StepRunner computes, Speculation guesses.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/draft/speculation.h"
#include "engine/engine_core.h"
#include "engine/session/found_prefix.h"
#include "engine/session/history.h"
#include "engine/session/ram_budget.h"
#include "engine/session/save_policy.h"
#include "engine/session/session_use.h"
#include "hearth/engine.h"

namespace hearth {

class SessionCore;

// What one session wants of a step.
struct SessionCoreStep {
  SessionCore* session;
  std::span<const std::int32_t> tokens;
  LogitRows want;
};

class SessionCore final : private KvHolder {
 public:
  static Result<std::shared_ptr<SessionCore>> Make(
      std::shared_ptr<EngineCore> engine, const SessionOptions& options = {});
  ~SessionCore() override;
  SessionCore(const SessionCore&) = delete;
  SessionCore& operator=(const SessionCore&) = delete;

  // A thread is inside while this lives; the memory budget learns at the end
  // what the session takes. Everything below is called from inside.
  class Visit {
   public:
    // kInvalidArgument when another thread is inside.
    static Result<Visit> Enter(SessionCore& session);
    Visit(Visit&& other) noexcept
        : session_(std::exchange(other.session_, nullptr)) {}
    Visit& operator=(Visit&&) = delete;
    ~Visit();

   private:
    explicit Visit(SessionCore* session) : session_(session) {}
    SessionCore* session_;
  };

  EngineCore& engine() { return *engine_; }
  const History& history() const { return history_; }
  History& history() { return history_; }
  SavePolicy& saves() { return saves_; }
  Speculation* speculation() { return speculation_.get(); }

  // kInvalidArgument for an empty prompt or foreign ids, kResourceFull when it
  // exceeds the context.
  Result<void> CheckPrompt(std::span<const std::int32_t> tokens) const;
  // How many leading ones of `tokens` need not be computed.
  // The history has them, or other sessions do.
  int Held(std::span<const std::int32_t> tokens) const;
  // Keeps the longest prefix of `tokens`, but never all of them, that the
  // history or `found` has.
  Result<SyncReport> Attach(std::span<const std::int32_t> tokens,
                            FoundPrefix found, std::span<const int> marks = {});
  // The same with what the prompt cache has: its directory is looked into.
  Result<SyncReport> Find(std::span<const std::int32_t> tokens,
                          std::span<const int> marks = {});
  // Find, and Prefill.
  Result<SyncReport> Sync(std::span<const std::int32_t> tokens,
                          const Session::Progress& progress,
                          std::span<const int> marks = {});
  // Computing so many tokens took `ms`: what loading is compared with.
  void NoteRead(int n_tokens, double ms);
  // Where the next step of a prompt of n_total tokens ends at the latest.
  int NextStop(int n_total) const;
  // As Session's.
  int NextStop() const { return NextStop(n_prompt_); }
  bool AddStop(int n_tokens);
  // Of an answer, whose last step's guesses were verified.
  void AfterToken();
  // Computes what the history lacks of `tokens`, which begin with it.
  Result<void> Prefill(std::span<const std::int32_t> tokens,
                       const Session::Progress& progress);
  // One forward step for sessions of one engine, all of them visited. After an
  // error every one is as before.
  static Result<void> StepAll(EngineCore& engine,
                              std::span<const SessionCoreStep> steps);
  Result<void> Step(std::span<const std::int32_t> tokens, LogitRows want);
  Result<void> Rewind(int n_tokens);
  Result<std::shared_ptr<SessionCore>> Fork() const;
  void Persist();
  // Without waiting; false: some of it was not handed over.
  bool TryPersist(bool rests);
  KvReport Usage() const;

  // Room for the history to grow to `n_tokens`, until the next step has ended.
  Result<void> Reserve(int n_tokens, Relief relief);
  // Nobody waits for what the session would go on with: its memory may go.
  void Rest() {
    in_progress_ = false;
    keeps_room_ = false;
  }

 private:
  SessionCore(std::shared_ptr<EngineCore> engine, History history,
              const SessionOptions& options);

  // For the memory budget.
  bool TryClaim() override;
  bool TryClaimInProgress() override { return use_.TryClaim(); }
  void Unclaim() override { use_.Unclaim(); }
  bool IsStored() override { return saves_.HasStored(history_); }
  KvSequence& kv() override { return history_.kv(); }
  void ExchangeStored() override;
  void Store() override;
  void LetGo() override;
  // Room for the history to grow to `n_tokens`, until the visit ends.
  Result<void> MakeRoom(int n_tokens, Relief relief);
  PrefixIds IdsOf(std::span<const std::int32_t> tokens) const;
  int Restore(std::span<const std::int32_t> tokens, FoundPrefix found,
              int n_have, SyncReport& report);
  void PlanStops(std::span<const std::int32_t> tokens,
                 std::span<const int> marks, int n_common, SyncReport& report);
  // The states as they are now, for sessions that begin alike, too.
  void KeepHere();
  void AfterStep(LogitRows want);
  bool has_states() const { return !engine_->kv.spec().states.empty(); }
  Result<void> CheckStep(const SessionCoreStep& step) const;

  const std::shared_ptr<EngineCore> engine_;
  SessionUse use_;
  History history_;
  SavePolicy saves_;
  std::unique_ptr<Speculation> speculation_;  // may be null
  std::vector<int>
      stops_;  // of the prompt: where states are to be kept; rising
  int n_prompt_ = 0;
  int branch_ = 0;           // how far stored blocks of the prompt go
  int room_tokens_ = 0;      // what MakeRoom gave
  bool keeps_room_ = false;  // beyond the visit, until a step has ended
  bool in_progress_ = false;
  // Saves that were done at the last look for something to exchange.
  std::optional<std::uint64_t> exchanged_at_;
};

}  // namespace hearth
