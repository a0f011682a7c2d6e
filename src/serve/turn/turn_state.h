// The state of one request for an answer (turn.h). Its functions are in turn.cc
// (until the scheduler has it), turn_events.cc (what it is told) and
// turn_out.cc (what it sends).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/mutex.h"
#include "serve/page/feed.h"
#include "serve/turn/prepare.h"
#include "serve/turn/turn_choice.h"
#include "serve/turn/turn_record.h"

namespace hearth::serve {

class Turn : public std::enable_shared_from_this<Turn> {
 public:
  Turn(Core& core, Call call, Dialect dialect)
      : core_(core), call_(std::move(call)), dialect_(dialect) {}

  void Prepare();  // a worker
  void Gone();     // the sockets' thread
  void Full(bool full);
  void Quiet();

 private:
  using Lock = MutexLock;

  // All of these with the mutex.
  void Refuse(const WireError& error);
  void Count();
  void Load();
  void Submit(Prepared prepared);
  JobCallbacks CallbacksOf(int prompt);
  void Watch();
  void Begin();
  void Open();
  void Out(std::string bytes);
  void FinishEarly();
  std::string Ending(std::optional<StoredResponse>& record);
  void Send(std::string bytes);
  void Record(int status, const std::string& fault);
  PageFeed::Ticket TellPage(std::span<const std::int32_t> prompt);
  void TellPageOfEnd(int status, const std::string& fault);

  // A worker, when all jobs have had their end.
  void Complete();
  void WriteJournal();
  void Keep(const std::optional<StoredResponse>& record);

  // The scheduler's thread.
  void OnStart(int prompt, const SyncReport& report);
  void OnPrefill(int prompt, int done);
  bool OnToken(int prompt, int choice, const Token& token);
  void OnEnd(int prompt, int choice, const Result<GenerateReport>& report);
  void OnDone(int prompt, const JobReport& report);

  Usage UsageNow() const;
  Figures FiguresNow() const;
  int IndexOf(int prompt, int choice) const {
    return prompt * request_.n + choice;
  }

  Core& core_;
  Call call_;
  const Dialect dialect_;
  Mutex mutex_;

  WireRequest request_;
  std::unique_ptr<AnswerWriter> writer_;
  std::vector<TurnChoice> choices_;
  std::vector<JobId> jobs_;
  std::vector<TurnPrompt> prompts_;        // one a job
  std::vector<PageFeed::Ticket> tickets_;  // one a job
  std::shared_ptr<const RenderedPrompt> rendered_;
  HistoryUse history_;
  std::vector<SampledIds> sampled_;  // answers that the journal is to know
  std::string why_missed_;
  std::uint64_t seed_ = 0;
  int breakpoint_tokens_ = 0;
  int left_ = 0;  // jobs that have not had their end
  bool begun_ = false, opened_ = false, gone_ = false, over_ = false;
  bool ending_ = false;  // the writer has said its last
  bool prefilled_ = false;
  Stopwatch since_submit_, since_token_;
  std::optional<WireError> error_;
};

}  // namespace hearth::serve
