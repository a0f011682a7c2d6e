// hearth perplexity: how well a model predicts a text.
#include "hearth/perplexity.h"

#include <memory>
#include <string>

#include "base/json.h"
#include "base/stopwatch.h"
#include "cli/commands/measured_text.h"
#include "cli/options/command.h"
#include "cli/options/engine_args.h"
#include "cli/terminal/input.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/units.h"

namespace hearth::cli {
namespace {

struct PerplexityArgs {
  EngineArgs base;
  PerplexityOptions options;
  std::string text_file;
  bool json = false;
  bool quiet = false;
};

double RateOf(const PerplexityReport& report, double ms) {
  return ms > 0 ? 1000.0 * static_cast<double>(report.n_computed_tokens) / ms
                : 0;
}

std::string AsJson(const PerplexityReport& report, double ms) {
  nlohmann::ordered_json json;
  json["perplexity"] = report.perplexity;
  json["perplexity_error"] = report.perplexity_error;
  json["nats_per_token"] = report.nats;
  json["nats_error"] = report.nats_error;
  json["context_tokens"] = report.context_tokens;
  json["chunks"] = report.n_chunks;
  json["bos"] = report.begins_with_bos;
  json["text_tokens"] = report.n_text_tokens;
  json["computed_tokens"] = report.n_computed_tokens;
  json["counted_tokens"] = report.n_counted_tokens;
  json["seconds"] = ms / 1000;
  json["tokens_per_second"] = RateOf(report, ms);
  return json.dump(2) + "\n";
}

std::string Footer(const PerplexityReport& report, double ms) {
  return std::to_string(report.n_chunks) + " chunks of " +
         std::to_string(report.context_tokens) + " tokens" +
         (report.begins_with_bos ? ", each with BOS in front" : "") + "; " +
         std::to_string(report.n_counted_tokens) + " tokens counted of " +
         std::to_string(report.n_text_tokens) + " in the text; " +
         std::to_string(report.n_computed_tokens) + " computed in " +
         HumanMs(ms) + ", " + Fixed(RateOf(report, ms), 1) + " tokens/s";
}

Result<PerplexityReport> Measure(PerplexityArgs& args, double& ms) {
  HEARTH_TRY(args.base.Finalize());
  HEARTH_ASSIGN(const std::string text, ReadPrompt(args.text_file));
  args.base.engine.context_tokens = args.options.context_tokens;
  HEARTH_ASSIGN(const auto engine, args.base.Open(args.quiet));
  CatchInterrupts();
  Progress progress("perplexity", Unit::kTokens, args.quiet);
  args.options.progress = Showing(progress);
  const Stopwatch watch;
  auto report = MeasurePerplexity(*engine, text, args.options);
  ms = watch.ms();
  if (!report.ok()) return OfText(args.text_file, report.error());
  return report;
}

int Run(PerplexityArgs& args) {
  double ms = 0;
  const auto report = Measure(args, ms);
  if (!report.ok()) {
    const int code = Fail(report.error());
    return report.error().code == Code::kCancelled ? kInterrupted : code;
  }
  Print(args.json ? AsJson(*report, ms)
                  : "perplexity " + Fixed(report->perplexity, 4) + " +/- " +
                        Fixed(report->perplexity_error, 5) + "\n");
  if (!args.quiet) Note(Footer(*report, ms));
  return kOk;
}

}  // namespace

void AddPerplexity(const Command& program, int& exit_code) {
  auto args = std::make_shared<PerplexityArgs>();
  Command command = program.Sub(
      "perplexity",
      "Measure how well a model predicts a text: exp of the mean -ln p(token) "
      "over the second half of each chunk, as llama-perplexity does");
  args->base.AddModel(command);
  AddTextOption(command, args->text_file);
  AddChunkOptions(command, args->options.context_tokens,
                  args->options.n_chunks_max);
  command.Flag("--json", args->json, "one JSON object instead");
  command.Flag("--quiet,-q", args->quiet, "no progress and no footer");
  args->base.AddKvFormat(command);
  command.Run(exit_code, [args] { return Run(*args); });
}

}  // namespace hearth::cli
