#include "serve/metrics/metrics.h"

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <map>

#include "base/mutex.h"

namespace hearth::serve {
namespace {

using prometheus::Histogram;

// Of waits, in seconds: from what a person does not see to what a client gives
// up on.
const Histogram::BucketBoundaries kWaits = {0.001, 0.003, 0.01, 0.03, 0.1, 0.3,
                                            1,     3,     10,   30,   100, 300};
const Histogram::BucketBoundaries kGaps = {0.003, 0.01, 0.02, 0.05, 0.1,
                                           0.2,   0.35, 0.5,  1,    3};

// Of work on one core for one token or one request.
const Histogram::BucketBoundaries kMasks = {1e-6, 1e-5, 3e-5, 1e-4, 3e-4,
                                            1e-3, 2e-3, 5e-3, 0.02, 0.1};
const Histogram::BucketBoundaries kCompiles = {3e-4, 1e-3, 3e-3, 5e-3, 0.01,
                                               0.03, 0.05, 0.1,  0.3,  1};

class PrometheusMetrics final : public Metrics {
 public:
  explicit PrometheusMetrics(std::string family) : family_(std::move(family)) {}

  void Count(const RequestFigures& r) override;
  void TokenGap(double ms) override { gaps_.Observe(ms / 1000); }
  void StreamPaused() override { paused_.Increment(); }
  void Mask(double ms) override { masks_.Observe(ms / 1000); }
  void Compiled(double ms) override { compiles_.Observe(ms / 1000); }
  std::string Text(const ServerGauges& now) override;

 private:
  using Labels = std::map<std::string, std::string>;

  prometheus::Family<prometheus::Counter>& Counters(const char* name,
                                                    const char* help) {
    return prometheus::BuildCounter().Name(name).Help(help).Register(registry_);
  }
  prometheus::Counter& Counter(const char* name, const char* help) {
    return Counters(name, help).Add({});
  }
  prometheus::Family<Histogram>& Histograms(const char* name,
                                            const char* help) {
    return prometheus::BuildHistogram().Name(name).Help(help).Register(
        registry_);
  }
  void Set(const char* name, const char* help, double value,
           const Labels& labels = {}) {
    prometheus::BuildGauge()
        .Name(name)
        .Help(help)
        .Register(registry_)
        .Add(labels)
        .Set(value);
  }
  // A total that somebody else counts.
  void Raise(const char* name, const char* help, std::uint64_t total,
             const Labels& labels = {}) HEARTH_REQUIRES(mutex_) {
    auto& counter = Counters(name, help).Add(labels);
    counter.Increment(
        std::max(0.0, static_cast<double>(total) - counter.Value()));
  }

  const std::string family_;
  prometheus::Registry registry_{prometheus::Registry::InsertBehavior::Merge};
  Histogram& gaps_ = Histograms("hearth_token_gap_seconds",
                                "Time between two tokens of an answer")
                         .Add({}, kGaps);
  Histogram& masks_ =
      Histograms("hearth_mask_seconds",
                 "Time to find which tokens an answer's form lets come next")
          .Add({}, kMasks);
  Histogram& compiles_ =
      Histograms("hearth_form_compile_seconds",
                 "Time to make an automaton of tools and schemas")
          .Add({}, kCompiles);
  prometheus::Counter& paused_ =
      Counter("hearth_stream_paused_total", "Answers that nobody read");
  Mutex mutex_;
};

void PrometheusMetrics::Count(const RequestFigures& r) {
  Counters("hearth_requests_total", "Requests")
      .Add({{"path", r.path}, {"status", std::to_string(r.status)}})
      .Increment();
  if (!r.cancelled.empty()) {
    Counters("hearth_cancelled_total", "Requests whose client left")
        .Add({{"phase", r.cancelled}})
        .Increment();
  }
  if (!r.generated) return;
  const auto observe = [this](const char* name, const char* help, double ms) {
    Histograms(name, help).Add({}, kWaits).Observe(ms / 1000);
  };
  observe("hearth_queue_seconds", "Time in line", r.queue_ms);
  observe("hearth_lookup_seconds", "Time to find a prompt's KV", r.lookup_ms);
  Histograms("hearth_ttft_seconds", "Time to the first token")
      .Add({{"warm", r.reused > 0 ? "true" : "false"}}, kWaits)
      .Observe(r.ttft_ms / 1000);
  auto& prompt = Counters("hearth_prompt_tokens_total",
                          "Prompt tokens, by where their KV came from");
  prompt.Add({{"from", "computed"}}).Increment(r.prompt - r.reused);
  if (r.reused > 0) prompt.Add({{"from", r.tier}}).Increment(r.reused);
  if (r.missed) {
    Counters("hearth_miss_total", "Prompts of which not all was reused")
        .Add({{"reason", std::string(NameOf(r.miss_kind))}})
        .Increment();
  }
  Counter("hearth_completion_tokens_total", "Tokens of answers")
      .Increment(r.completion);
  if (r.fault) {
    Counters("hearth_parse_faults_total", "Answers whose form was wrong")
        .Add({{"family", family_.empty() ? "none" : family_}})
        .Increment();
  }
  Counter("llamacpp:prompt_tokens_total", "Number of prompt tokens processed.")
      .Increment(r.prompt - r.reused);
  Counter("llamacpp:prompt_seconds_total", "Prompt process time")
      .Increment(std::max(0.0, r.prefill_ms) / 1000);
  Counter("llamacpp:tokens_predicted_total",
          "Number of generation tokens processed.")
      .Increment(r.completion);
  Counter("llamacpp:tokens_predicted_seconds_total", "Predict process time")
      .Increment(std::max(0.0, r.decode_ms) / 1000);
}

std::string PrometheusMetrics::Text(const ServerGauges& now) {
  const MutexLock lock(mutex_);
  const auto d = [](std::uint64_t n) { return static_cast<double>(n); };
  Set("hearth_running", "Requests being computed", now.running);
  Set("hearth_waiting", "Requests in line", now.waiting);
  Set("hearth_resting", "Conversations in memory that nobody asks now",
      now.resting);
  Set("hearth_connections", "Open connections", now.connections);
  Set("hearth_prefill_rate", "Prompt tokens a second, lately",
      now.prefill_rate);
  Set("hearth_decode_rate", "Answer tokens a second, lately", now.decode_rate);
  const char* kv = "Bytes of KV in memory";
  Set("hearth_kv_bytes", kv, d(now.kv_held_bytes), {{"kind", "anonymous"}});
  Set("hearth_kv_bytes", kv, d(now.kv_mapped_bytes), {{"kind", "mapped"}});
  Set("hearth_state_bytes",
      "Of anonymous KV: states that models carry from token to token",
      d(now.kv_state_bytes));
  Set("hearth_kv_budget_bytes", "What anonymous KV may take; 0: no limit",
      d(now.kv_budget_bytes));
  Set("hearth_store_bytes", "Bytes of the store's files", d(now.store_bytes));
  Set("hearth_store_budget_bytes", "What the store may take; 0: no limit",
      d(now.store_budget_bytes));
  Set("hearth_save_queue_bytes", "Bytes on their way to the store",
      d(now.save_queue_bytes));
  Raise("hearth_saves_lost_total", "Saves that failed or were given up",
        now.saves_lost);
  const char* passes = "Forward steps";
  Raise("hearth_passes_total", passes, now.passes - now.mixed_passes,
        {{"kind", "decode"}});
  Raise("hearth_passes_total", passes, now.mixed_passes, {{"kind", "mixed"}});
  Raise("hearth_pass_rows_total", "Tokens in forward steps", now.rows);
  const char* preempted = "Requests whose memory went to others";
  Raise("hearth_preemptions_total", preempted, now.preempted_prefills,
        {{"step", "prefill"}});
  Raise("hearth_preemptions_total", preempted, now.preempted_decodes,
        {{"step", "decode"}});
  Set("llamacpp:requests_processing", "Number of requests processing.",
      now.running);
  Set("llamacpp:requests_deferred", "Number of requests deferred.",
      now.waiting);
  Set("llamacpp:prompt_tokens_seconds",
      "Average prompt throughput in tokens/s.", now.prefill_rate);
  Set("llamacpp:predicted_tokens_seconds",
      "Average generation throughput in tokens/s.", now.decode_rate);
  return prometheus::TextSerializer().Serialize(registry_.Collect());
}

}  // namespace

std::string_view NameOf(MissKind kind) {
  switch (kind) {
    case MissKind::kNotStored:
      return "not_stored";
    case MissKind::kDefect:
      return "defect";
    case MissKind::kIncompatible:
      return "incompatible";
    case MissKind::kSlower:
      return "slower";
    case MissKind::kNoMemory:
      return "no_memory";
    case MissKind::kState:
      return "state";
  }
  return "not_stored";
}

std::unique_ptr<Metrics> Metrics::Make(const std::string& tool_format) {
  return std::make_unique<PrometheusMetrics>(tool_format);
}

}  // namespace hearth::serve
