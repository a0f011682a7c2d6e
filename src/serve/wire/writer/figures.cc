#include "serve/wire/writer/figures.h"

#include <cmath>

namespace hearth::serve {
namespace {

double PerSecond(int n, double ms) { return ms > 0 ? n * 1000.0 / ms : 0.0; }
double Each(int n, double ms) { return n > 0 ? ms / n : 0.0; }
// Microseconds are enough, and short.
double Rounded(double ms) { return std::round(ms * 1000) / 1000; }

}  // namespace

OrderedJson HearthObject(const WireRequest& request, const Usage& usage,
                         const Figures& figures) {
  OrderedJson out = {{"prompt", usage.prompt},
                     {"reused", usage.reused},
                     {"computed", usage.computed},
                     {"written", usage.written},
                     {"tier", figures.tier}};
  if (!figures.miss.empty()) out["miss"] = figures.miss;
  out["seed"] = figures.seed;
  if (!figures.ids.empty()) out["ids"] = figures.ids;
  out["ignored"] = request.ignored;
  out["queue_ms"] = Rounded(figures.queue_ms);
  out["lookup_ms"] = Rounded(figures.lookup_ms);
  out["prefill_ms"] = Rounded(figures.prefill_ms);
  out["ttft_ms"] = Rounded(figures.ttft_ms);
  out["decode_ms"] = Rounded(figures.decode_ms);
  out["kv_bytes"] = figures.kv_bytes;
  if (!figures.parse_fault.empty()) out["parse_fault"] = figures.parse_fault;
  out["preempted"] = figures.preempted;
  return out;
}

OrderedJson TimingsObject(const Usage& usage, const Figures& figures) {
  return {
      {"cache_n", usage.reused},
      {"prompt_n", usage.computed},
      {"prompt_ms", Rounded(figures.prefill_ms)},
      {"prompt_per_token_ms", Each(usage.computed, figures.prefill_ms)},
      {"prompt_per_second", PerSecond(usage.computed, figures.prefill_ms)},
      {"predicted_n", usage.completion},
      {"predicted_ms", Rounded(figures.decode_ms)},
      {"predicted_per_token_ms", Each(usage.completion, figures.decode_ms)},
      {"predicted_per_second", PerSecond(usage.completion, figures.decode_ms)}};
}

OrderedJson ChatUsage(const Usage& usage) {
  return {
      {"prompt_tokens", usage.prompt},
      {"completion_tokens", usage.completion},
      {"total_tokens", usage.prompt + usage.completion},
      {"prompt_tokens_details",
       {{"cached_tokens", usage.reused},
        {"cache_write_tokens", usage.written}}},
      {"completion_tokens_details", {{"reasoning_tokens", usage.reasoning}}}};
}

OrderedJson ProgressObject(const Usage& usage, int processed, int total,
                           double elapsed_ms) {
  return {{"total", total},
          {"cache", usage.reused},
          {"processed", processed},
          {"time_ms", Rounded(elapsed_ms)}};
}

}  // namespace hearth::serve
