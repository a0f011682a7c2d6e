#include "serve/turn/turn.h"

#include <utility>

#include "serve/app/page_desk.h"
#include "serve/turn/turn_state.h"
#include "serve/wire/store/stored_routes.h"

namespace hearth::serve {
namespace {

// The first event has final figures when the lookup is as quick as this.
constexpr int kLookupMs = 50;

}  // namespace

void Turn::Prepare() {
  const Lock lock(mutex_);
  if (gone_) return Record(499, "client_gone");
  ParseContext context;
  if (core_.dialogue != nullptr) {
    context.reads = [this](std::string_view name) {
      return core_.dialogue->Reads(name);
    };
    context.has_tool_format = !core_.dialogue->tool_format().empty();
  }
  context.served_model = core_.served.id;
  context.strict_model = core_.strict_model;
  context.space = call_.space;
  context.store = core_.store.get();
  context.now_s = NowMs() / 1000;
  auto parsed = ParseRequest(dialect_, call_.http.path, call_.http.query,
                             call_.http.body, context);
  if (!parsed.ok()) return Refuse(parsed.error());
  request_ = std::move(parsed).value();
  call_.http.body = {};
  if (request_.count_only) return Count();
  if (request_.load_only) return Load();
  auto prepared = serve::Prepare(core_, request_);
  if (!prepared.ok()) return Refuse(prepared.error());
  Submit(std::move(prepared).value());
}

void Turn::Count() {
  const auto prompts = PreparePrompts(core_, request_);
  if (!prompts.ok()) return Refuse(prompts.error());
  HttpAnswer answer =
      JsonAnswer({{"input_tokens", prompts->front().ids.size()}});
  answer.headers = call_.headers;
  call_.reply->Whole(std::move(answer));
  over_ = true;
  Record(200, "");
}

// There is nothing to load: the model is there.
void Turn::Load() {
  writer_ = MakeWriter(request_, core_.served, call_.id, NowMs() / 1000);
  std::optional<StoredResponse> none;
  Begin();
  Send(Ending(none));
}

void Turn::Refuse(const WireError& error) {
  HttpAnswer answer = ErrorAnswer(dialect_, error, call_.id);
  answer.headers.insert(answer.headers.end(), call_.headers.begin(),
                        call_.headers.end());
  call_.reply->Whole(std::move(answer));
  over_ = true;
  Record(error.status, error.code.empty() ? error.type : error.code);
}

void Turn::Submit(Prepared prepared) {
  seed_ = prepared.options.sampling.seed;
  breakpoint_tokens_ = prepared.breakpoint_tokens;
  rendered_ = prepared.rendered;
  history_ = prepared.history;
  if (rendered_ != nullptr) {
    why_missed_ = WhyMissed(request_, core_.served.id, rendered_->ids,
                            core_.store.get(), NowMs() / 1000);
  }
  writer_ = MakeWriter(request_, core_.served, call_.id, NowMs() / 1000,
                       core_.store.get());
  const int n_prompts = static_cast<int>(prepared.prompts.size());
  for (int p = 0; p < n_prompts; ++p) {
    PreparedPrompt& prompt = prepared.prompts[static_cast<std::size_t>(p)];
    prompts_.push_back({.tokens = static_cast<int>(prompt.ids.size())});
    prompt.readers.resize(static_cast<std::size_t>(request_.n));
    for (int c = 0; c < request_.n; ++c) {
      if (request_.echo) writer_->SetEcho(IndexOf(p, c), prompt.text);
      choices_.emplace_back(
          IndexOf(p, c), std::move(prompt.readers[static_cast<std::size_t>(c)]),
          request_.logprobs, core_.engine->codec());
    }
  }
  Watch();
  since_submit_ = Stopwatch();
  for (int p = 0; p < n_prompts; ++p) {
    PreparedPrompt& prompt = prepared.prompts[static_cast<std::size_t>(p)];
    Job job;
    job.prompt = std::move(prompt.ids);
    job.save_points = std::move(prompt.save_points);
    job.marks = std::move(prompt.marks);
    job.options = prepared.options;
    job.n = request_.n;
    job.key_space = call_.space;
    job.callbacks = CallbacksOf(p);
    tickets_.push_back(TellPage(job.prompt));
    auto submitted = core_.scheduler->Submit(std::move(job));
    if (!submitted.ok()) {
      // Those before it end first: their reports count.
      error_ = WireErrorOf(submitted.error());
      for (const JobId id : jobs_) core_.scheduler->Cancel(id);
      if (left_ == 0) FinishEarly();
      return;
    }
    core_.page->feed().Submitted(tickets_.back(), *submitted);
    jobs_.push_back(*submitted);
    ++left_;
  }
  core_.later(kLookupMs, [self = shared_from_this()] {
    const Lock lock(self->mutex_);
    if (!self->over_ && !self->ending_) self->Begin();
  });
}

JobCallbacks Turn::CallbacksOf(int prompt) {
  JobCallbacks calls;
  const auto self = shared_from_this();
  calls.on_start = [self, prompt](const SyncReport& report) {
    self->OnStart(prompt, report);
  };
  calls.on_prefill = [self, prompt](int done, int) {
    self->OnPrefill(prompt, done);
  };
  calls.on_token = [self, prompt](int choice, const Token& token) {
    return self->OnToken(prompt, choice, token);
  };
  calls.on_end = [self, prompt](int choice,
                                const Result<GenerateReport>& report) {
    self->OnEnd(prompt, choice, report);
  };
  calls.on_done = [self, prompt](const JobReport& report) {
    self->OnDone(prompt, report);
  };
  return calls;
}

void Turn::Watch() {
  const PingRule rule = writer_->pings();
  ReplyWatch watch;
  // The reply is part of the turn: a strong hold here would be a circle.
  const std::weak_ptr<Turn> weak = weak_from_this();
  watch.gone = [weak] {
    if (const auto self = weak.lock()) self->Gone();
  };
  watch.full = [weak](bool full) {
    if (const auto self = weak.lock()) self->Full(full);
  };
  watch.quiet = [weak] {
    if (const auto self = weak.lock()) self->Quiet();
  };
  watch.quiet_first_ms = rule.first_ms;
  watch.quiet_every_ms = rule.every_ms;
  call_.reply->Watch(std::move(watch));
}

void StartTurn(Core& core, Call call, Dialect dialect) {
  auto turn = std::make_shared<Turn>(core, std::move(call), dialect);
  core.workers->Do([turn] { turn->Prepare(); });
}

}  // namespace hearth::serve
