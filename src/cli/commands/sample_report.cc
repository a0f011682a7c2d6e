#include "cli/commands/sample_report.h"

#include "base/json.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"

namespace hearth::cli {
namespace {

int DecodeTokens(const SampleReport& report) {
  return static_cast<int>(report.generate.token_ids.size());
}

// Tokens after the first one over the time they took; 0: there was none.
double RateOf(int n_tokens, double decode_ms) {
  const int n = n_tokens - 1;
  return n > 0 && decode_ms > 0 ? 1000.0 * n / decode_ms : 0;
}

double DecodeRate(const SampleReport& report) {
  return RateOf(DecodeTokens(report), report.generate.decode_ms);
}

double PrefillRate(const SampleReport& report) {
  const int n = report.sync.prompt_tokens - report.sync.reused_tokens;
  return report.sync.prefill_ms > 0 ? 1000.0 * n / report.sync.prefill_ms : 0;
}

// Tokens that one forward step brought: 1 without guesses.
double TokensPerStep(const SpeculationReport& r) {
  return r.steps > 0 ? 1.0 + static_cast<double>(r.accepted) / r.steps : 0;
}

// Where the prompt's tokens came from, and why not more of them.
std::string PromptText(const SampleReport& r) {
  std::string text = std::to_string(r.sync.prompt_tokens) + " tokens, " +
                     std::to_string(r.sync.reused_tokens) + " reused";
  if (r.sync.reused_tokens > 0) {
    text += " (" + r.sync.reuse_tier + ", " + HumanMs(r.sync.lookup_ms) + ")";
  }
  if (r.ids_from_store > 0) {
    text +=
        "; " + std::to_string(r.ids_from_store) + " ids found by their text";
  }
  if (!r.sync.miss_reason.empty()) text += "; " + r.sync.miss_reason;
  return Escaped(text);
}

}  // namespace

const char* NameOf(StopReason reason) {
  switch (reason) {
    case StopReason::kLength:
      return "length";
    case StopReason::kEndOfText:
      return "end of text";
    case StopReason::kContext:
      return "context full";
    case StopReason::kCaller:
      return "interrupted";
  }
  return "";
}

std::string DecodeText(int n_tokens, double decode_ms) {
  std::string text =
      std::to_string(n_tokens) + (n_tokens == 1 ? " token" : " tokens");
  const double rate = RateOf(n_tokens, decode_ms);
  if (rate > 0) text += " at " + Fixed(rate, 1) + " tokens/s";
  return text;
}

std::string SpeculationText(const SpeculationReport& r) {
  if (r.drafter.empty()) return "";
  std::string text = std::to_string(r.accepted) + " of " +
                     std::to_string(r.drafted) + " guesses right, " +
                     Fixed(TokensPerStep(r), 2) + " tokens a step (" +
                     r.drafter + ")";
  if (r.kv_physical_bytes > 0) {
    text += ", its KV " + HumanBytes(r.kv_physical_bytes);
  }
  return text;
}

std::string Footer(const SampleReport& r) {
  std::string text = "\nprompt   " + PromptText(r);
  text += "\nspeed    first token after " + HumanMs(r.ttft_ms) + " (ready " +
          HumanMs(r.start_ms) + ")";
  if (r.cached) {
    text += ", prefill " + HumanMs(r.sync.prefill_ms) + " at " +
            Fixed(PrefillRate(r), 0) + " tokens/s";
  }
  text += ", decode " + DecodeText(DecodeTokens(r), r.generate.decode_ms);
  text += "\ndevice   " + Escaped(r.device.name);
  if (!r.device.note.empty()) text += " (" + r.device.note + ")";
  if (r.device.kv_bytes > 0) {
    text += ", weights " + HumanBytes(r.device.weight_bytes) + ", room for " +
            HumanBytes(r.device.kv_bytes) + " of KV";
  }
  text += "\nkv       ";
  if (r.cached) {
    text += std::to_string(r.kv.tokens) + " tokens, " +
            HumanBytes(r.kv.logical_bytes) + " logical, " +
            HumanBytes(r.kv.physical_bytes) + " physical";
    if (r.kv.mapped_bytes > 0) {
      text += " (" + HumanBytes(r.kv.mapped_bytes) + " mapped)";
    }
    text += ", " + std::to_string(r.kv.populated_layers) + "/" +
            std::to_string(r.kv.kv_layers) + " layers";
    if (r.kv.state_bytes > 0) {
      text += ", states " + HumanBytes(r.kv.state_bytes) + " (the newest and " +
              std::to_string(r.kv.kept_states) + " kept)";
    }
  } else {
    text += "not cached";
  }
  const std::string speculation = SpeculationText(r.generate.speculation);
  if (!speculation.empty()) text += "\ndraft    " + Escaped(speculation);
  text += std::string("\nend      ") + NameOf(r.generate.stop);
  if (!r.greedy) text += ", seed " + std::to_string(r.seed);
  return text + "\n";
}

std::string ShortFooter(const SampleReport& r) {
  std::string text = "\n[" + PromptText(r) + "]\n[first token after " +
                     HumanMs(r.ttft_ms) + ", " +
                     DecodeText(DecodeTokens(r), r.generate.decode_ms);
  if (r.device.kv_bytes > 0) text += " on " + Escaped(r.device.name);
  if (r.cached) text += ", KV " + HumanBytes(r.kv.logical_bytes);
  text += std::string(", ") + NameOf(r.generate.stop);
  if (!r.greedy) text += ", seed " + std::to_string(r.seed);
  return text + "]\n";
}

std::string ToJson(const SampleReport& r) {
  nlohmann::ordered_json json;
  json["text"] = r.generate.text;
  json["token_ids"] = r.generate.token_ids;
  json["stop"] = NameOf(r.generate.stop);
  json["prompt_tokens"] = r.sync.prompt_tokens;
  json["reused_tokens"] = r.sync.reused_tokens;
  json["ids_from_store"] = r.ids_from_store;
  json["reuse_tier"] = r.sync.reuse_tier;
  json["miss_reason"] = r.sync.miss_reason;
  json["warnings"] = r.sync.warnings;
  json["start_ms"] = r.start_ms;
  json["ttft_ms"] = r.ttft_ms;
  json["lookup_ms"] = r.sync.lookup_ms;
  json["prefill_ms"] = r.sync.prefill_ms;
  json["decode_tokens"] = DecodeTokens(r);
  json["decode_tokens_per_s"] = DecodeRate(r);
  json["device"] = r.device.name;
  json["kv_tokens"] = r.kv.tokens;
  json["kv_logical_bytes"] = r.kv.logical_bytes;
  json["kv_physical_bytes"] = r.kv.physical_bytes;
  json["kv_mapped_bytes"] = r.kv.mapped_bytes;
  if (r.kv.state_bytes > 0) {
    json["state_bytes"] = r.kv.state_bytes;
    json["kept_states"] = r.kv.kept_states;
  }
  json["kv_populated_layers"] = r.kv.populated_layers;
  const SpeculationReport& speculation = r.generate.speculation;
  if (!speculation.drafter.empty()) {
    json["drafter"] = speculation.drafter;
    json["decode_steps"] = speculation.steps;
    json["drafted_tokens"] = speculation.drafted;
    json["accepted_tokens"] = speculation.accepted;
    json["tokens_per_step"] = TokensPerStep(speculation);
    json["draft_kv_physical_bytes"] = speculation.kv_physical_bytes;
  }
  json["seed"] = r.seed;
  return json.dump(-1, ' ', false,
                   nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace hearth::cli
