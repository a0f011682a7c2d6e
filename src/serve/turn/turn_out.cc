// What a request in flight sends, and what is kept of it.
#include <utility>

#include "serve/app/page_desk.h"
#include "serve/turn/turn_state.h"
#include "serve/wire/store/stored_routes.h"

namespace hearth::serve {

void Turn::Begin() {
  if (begun_) return;
  begun_ = true;
  Out(writer_->Begin(UsageNow(), FiguresNow()));
  if (!over_ && writer_->pings().at_once) {
    Out(writer_->Ping(UsageNow().reused, UsageNow().prompt, 0));
  }
}

// The status and the headers, with what is known by now.
void Turn::Open() {
  if (opened_) return;
  opened_ = true;
  std::vector<HttpHeader> headers = call_.headers;
  AddTurnHeaders(headers, UsageNow(), FiguresNow(), request_.ignored);
  call_.reply->Start(200, std::string(writer_->content_type()),
                     std::move(headers));
}

void Turn::Out(std::string bytes) {
  if (bytes.empty() || gone_) return;
  Open();
  call_.reply->Send(std::move(bytes));
}

// An end without an answer.
void Turn::FinishEarly() {
  over_ = true;
  if (gone_) return Record(499, "client_gone");
  if (!opened_) return Refuse(*error_);
  Out(writer_->Fail(*error_));
  call_.reply->End();
  Record(200, error_->type);
}

std::string Turn::Ending(std::optional<StoredResponse>& record) {
  Begin();
  ending_ = true;
  std::string bytes = writer_->End(UsageNow(), FiguresNow());
  record = writer_->TakeRecord();
  return bytes;
}

void Turn::Send(std::string bytes) {
  over_ = true;
  if (gone_) return Record(499, "client_gone");
  if (opened_) {
    Out(std::move(bytes));
    call_.reply->End();
  } else {
    HttpAnswer answer;
    answer.content_type = std::string(writer_->content_type());
    answer.body = std::move(bytes);
    answer.headers = call_.headers;
    AddTurnHeaders(answer.headers, UsageNow(), FiguresNow(), request_.ignored);
    call_.reply->Whole(std::move(answer));
  }
  Record(200, "");
}

// What later requests will ask for is there before this one's client knows.
void Turn::Complete() {
  WriteJournal();
  std::optional<StoredResponse> record;
  std::string bytes;
  {
    const Lock lock(mutex_);
    if (over_) return;
    if (gone_ || error_.has_value()) return FinishEarly();
    bytes = Ending(record);
  }
  Keep(record);
  const Lock lock(mutex_);
  Send(std::move(bytes));
}

void Turn::WriteJournal() {
  if (core_.journal == nullptr || sampled_.empty()) return;
  PrefixName before(call_.space);
  before.Add(rendered_->ids);
  const HistoryReading reading = {*core_.dialogue, core_.engine->codec(),
                                  request_.dialogue, *rendered_};
  for (const SampledIds& sampled : sampled_) {
    const auto name = AnswerName(reading, before, sampled.ids);
    if (name.has_value()) core_.journal->Put(*name, sampled);
  }
}

void Turn::Keep(const std::optional<StoredResponse>& record) {
  if (core_.store == nullptr) return;
  const std::int64_t now_s = NowMs() / 1000;
  // What does not get to the disk is in memory; nobody waits for more.
  if (record.has_value()) (void)core_.store->Put(*record, now_s);
  if (dialect_ == Dialect::kMessages && rendered_ != nullptr) {
    (void)core_.store->Put(PromptRecord(request_, writer_->id(),
                                        core_.served.id, rendered_->ids, now_s),
                           now_s);
  }
}

void Turn::Record(int status, const std::string& fault) {
  TurnRecord record;
  record.status = status;
  record.fault = fault;
  record.label = request_.label;
  record.streamed = request_.stream;
  record.generated = !prompts_.empty() && left_ == 0 && !error_.has_value();
  record.usage = UsageNow();
  record.figures = FiguresNow();
  bool missed = false;
  for (const TurnPrompt& prompt : prompts_) {
    record.preemptions += prompt.report.preemptions;
    if (!missed && !prompt.miss.empty()) record.miss_kind = prompt.miss_kind;
    missed |= !prompt.miss.empty();
  }
  if (gone_) record.cancelled = prefilled_ ? "decode" : "prefill";
  WriteTurnRecord(core_, call_, record);
  TellPageOfEnd(status, fault);
}

// --- The page
// -----------------------------------------------------------------

PageFeed::Ticket Turn::TellPage(std::span<const std::int32_t> prompt) {
  PageRequestStart start;
  start.id = call_.id;
  start.client = call_.http.Header("user-agent");
  start.path = call_.http.path;
  start.label = request_.label;
  start.prompt = prompt;
  return core_.page->feed().Begin(start);
}

void Turn::TellPageOfEnd(int status, const std::string& fault) {
  // A refusal is seen, too; what only counts or loads is no request for it.
  if (tickets_.empty() && status >= 400) tickets_.push_back(TellPage({}));
  for (std::size_t p = 0; p < tickets_.size(); ++p) {
    PageRequestEnd end;
    end.status = status;
    end.fault = fault;
    if (p < prompts_.size()) end.job = prompts_[p].report;
    for (int c = 0; c < request_.n; ++c) {
      const auto at = static_cast<std::size_t>(IndexOf(static_cast<int>(p), c));
      if (at < choices_.size())
        end.completion_tokens += choices_[at].n_tokens();
    }
    core_.page->feed().End(tickets_[p], end);
  }
}

// --- Figures ----------------------------------------------------------------

Usage Turn::UsageNow() const {
  Usage usage = UsageOf(prompts_, breakpoint_tokens_);
  for (const TurnChoice& choice : choices_) {
    usage.completion += choice.n_tokens();
    usage.reasoning += choice.n_reasoning();
  }
  return usage;
}

Figures Turn::FiguresNow() const {
  Figures figures = FiguresOf(prompts_);
  figures.seed = seed_;
  figures.cache_miss_reason = why_missed_;
  if (history_.answers > 0) {
    figures.ids = "journal " + std::to_string(history_.found) + "/" +
                  std::to_string(history_.answers);
  }
  for (const TurnChoice& choice : choices_) {
    if (!choice.fault().empty()) figures.parse_fault = choice.fault();
  }
  return figures;
}

}  // namespace hearth::serve
