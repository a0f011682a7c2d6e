#include "serve/turn/turn_record.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace hearth::serve {
namespace {

double Rounded(double ms) { return std::round(ms * 1000) / 1000; }

// A path that the server has, or "other": what clients make up must not become
// names of counters.
std::string CountedPath(const std::string& path) {
  constexpr std::string_view kKnown[] = {"/health",
                                         "/metrics",
                                         "/props",
                                         "/slots",
                                         "/tokenize",
                                         "/detokenize",
                                         "/v1/models",
                                         "/api/tags",
                                         "/api/show",
                                         "/api/ps",
                                         "/api/version",
                                         "/apply-template",
                                         "/v1/messages/count_tokens"};
  const bool known = std::find(std::begin(kKnown), std::end(kKnown), path) !=
                         std::end(kKnown) ||
                     DialectOf(path).has_value();
  return known ? path : "other";
}

OrderedJson LineOf(const Call& call, int status) {
  OrderedJson line = {
      {"time_ms", NowMs()},         {"id", call.id},
      {"client", call.client},      {"peer", call.http.peer},
      {"method", call.http.method}, {"path", CountedPath(call.http.path)},
      {"status", status},           {"ms", Rounded(call.since.ms())}};
  return line;
}

void Log(Core& core, const OrderedJson& line) {
  if (core.log == nullptr) return;
  core.log->Write(
      line.dump(-1, ' ', false, OrderedJson::error_handler_t::replace));
}

}  // namespace

std::int64_t NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Usage UsageOf(const std::vector<TurnPrompt>& prompts, int breakpoint_tokens) {
  Usage usage;
  for (const TurnPrompt& prompt : prompts) {
    // The scheduler's own count at the end, which preemption may have changed.
    const int reused =
        prompt.ended ? prompt.report.reused_tokens : prompt.reused;
    usage.prompt += prompt.tokens;
    usage.reused += reused;
    usage.computed += prompt.tokens - reused;
    usage.written += prompt.report.written_tokens;
    usage.computed_to_breakpoint +=
        std::clamp(breakpoint_tokens - reused, 0, prompt.tokens - reused);
  }
  return usage;
}

Figures FiguresOf(const std::vector<TurnPrompt>& prompts) {
  Figures figures;
  for (const TurnPrompt& prompt : prompts) {
    const JobReport& report = prompt.report;
    figures.queue_ms = std::max(figures.queue_ms, report.queue_ms);
    figures.lookup_ms = std::max(figures.lookup_ms, report.lookup_ms);
    figures.prefill_ms = std::max(figures.prefill_ms, report.prefill_ms);
    figures.ttft_ms = std::max(figures.ttft_ms, report.ttft_ms);
    figures.decode_ms = std::max(figures.decode_ms, report.decode_ms);
    figures.kv_bytes += report.kv_physical_bytes;
    figures.preempted = figures.preempted || report.preemptions > 0;
    if (figures.tier.empty() || figures.tier == "none") {
      figures.tier = prompt.tier;
    }
    if (figures.miss.empty()) figures.miss = prompt.miss;
  }
  return figures;
}

void AddTurnHeaders(std::vector<HttpHeader>& headers, const Usage& usage,
                    const Figures& figures,
                    const std::vector<std::string>& ignored) {
  headers.push_back({"X-Hearth-Prompt", std::to_string(usage.prompt)});
  // No tier: it is still being looked up, and 0 would be no figure.
  if (!figures.tier.empty()) {
    headers.push_back({"X-Hearth-Reused", std::to_string(usage.reused)});
    headers.push_back({"X-Hearth-Tier", figures.tier});
  }
  if (!figures.miss.empty()) {
    headers.push_back({"X-Hearth-Miss", figures.miss});
  }
  headers.push_back({"X-Hearth-Seed", std::to_string(figures.seed)});
  if (!figures.ids.empty()) headers.push_back({"X-Hearth-Ids", figures.ids});
  if (ignored.empty()) return;
  std::string names;
  for (const std::string& name : ignored) {
    names += (names.empty() ? "" : ", ") + name;
  }
  // Callers may invent as many fields as they like; a head has an end.
  constexpr std::size_t kNamesMax = 2048;
  if (names.size() > kNamesMax) names.resize(kNamesMax);
  headers.push_back({"X-Hearth-Ignored", names});
}

void WriteTurnRecord(Core& core, const Call& call, const TurnRecord& record) {
  const Usage& usage = record.usage;
  const Figures& figures = record.figures;
  RequestFigures counted;
  counted.path = CountedPath(call.http.path);
  counted.status = record.status;
  counted.tier = figures.tier;
  counted.missed = !figures.miss.empty();
  counted.miss_kind = record.miss_kind;
  counted.prompt = usage.prompt;
  counted.reused = usage.reused;
  counted.completion = usage.completion;
  counted.preemptions = record.preemptions;
  counted.queue_ms = figures.queue_ms;
  counted.lookup_ms = figures.lookup_ms;
  counted.prefill_ms = figures.prefill_ms;
  counted.ttft_ms = figures.ttft_ms;
  counted.decode_ms = figures.decode_ms;
  counted.generated = record.generated;
  counted.fault = !figures.parse_fault.empty();
  counted.cancelled = record.cancelled;
  core.metrics->Count(counted);

  OrderedJson line = LineOf(call, record.status);
  if (!record.fault.empty()) line["fault"] = record.fault;
  if (!record.cancelled.empty()) line["cancelled"] = record.cancelled;
  line["stream"] = record.streamed;
  line["prompt"] = usage.prompt;
  line["reused"] = usage.reused;
  line["written"] = usage.written;
  line["completion"] = usage.completion;
  line["reasoning"] = usage.reasoning;
  line["tier"] = figures.tier;
  if (!figures.miss.empty()) line["miss"] = figures.miss;
  line["seed"] = figures.seed;
  line["queue_ms"] = Rounded(figures.queue_ms);
  line["lookup_ms"] = Rounded(figures.lookup_ms);
  line["prefill_ms"] = Rounded(figures.prefill_ms);
  line["ttft_ms"] = Rounded(figures.ttft_ms);
  line["decode_ms"] = Rounded(figures.decode_ms);
  line["kv_bytes"] = figures.kv_bytes;
  if (!figures.ids.empty()) line["ids"] = figures.ids;
  if (record.preemptions > 0) line["preemptions"] = record.preemptions;
  if (!figures.parse_fault.empty()) line["parse_fault"] = true;
  Log(core, line);
}

void WriteRecord(Core& core, const Call& call, int status) {
  RequestFigures counted;
  counted.path = CountedPath(call.http.path);
  counted.status = status;
  core.metrics->Count(counted);
  Log(core, LineOf(call, status));
}

}  // namespace hearth::serve
