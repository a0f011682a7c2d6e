// hearth imatrix: how large the inputs of a model's layers are for a text.
#include <filesystem>
#include <memory>
#include <string>

#include "base/stopwatch.h"
#include "cli/commands/measured_text.h"
#include "cli/commands/model_writing.h"
#include "cli/options/command.h"
#include "cli/options/engine_args.h"
#include "cli/terminal/input.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/units.h"
#include "hearth/importance.h"

namespace hearth::cli {
namespace {

struct ImatrixArgs {
  EngineArgs base;
  ImportanceOptions options;
  std::string text_file, out;
  bool force = false;
  bool quiet = false;
};

Result<ImportanceReport> Measure(ImatrixArgs& args, const std::string& text) {
  args.base.engine.context_tokens = args.options.context_tokens;
  // A card does not show what its layers see.
  if (args.base.engine.device == DeviceChoice::kAuto) {
    args.base.engine.device = DeviceChoice::kCpu;
  }
  HEARTH_ASSIGN(const auto engine, args.base.Open(args.quiet));
  CatchInterrupts();
  Progress progress("imatrix", Unit::kTokens, args.quiet);
  args.options.progress = Showing(progress);
  auto report = MeasureImportance(*engine, text, args.options);
  if (!report.ok()) return OfText(args.text_file, report.error());
  return report;
}

Result<void> Write(ImatrixArgs& args) {
  HEARTH_TRY(args.base.Finalize());
  const WriteOptions writing{.replace = args.force, .progress = {}};
  HEARTH_TRY(CheckImportanceTarget(args.out, writing));
  HEARTH_ASSIGN(const std::string text, ReadPrompt(args.text_file));
  args.options.dataset =
      args.text_file == "-"
          ? "stdin"
          : std::filesystem::path(args.text_file).filename().string();
  const Stopwatch watch;
  HEARTH_ASSIGN(const ImportanceReport report, Measure(args, text));
  const double ms = watch.ms();
  HEARTH_TRY(WriteImportance(args.out, report.matrix, writing));
  if (args.quiet) return {};
  for (const std::string& note : report.notes) Note(note);
  Note("wrote " + args.out + ": " +
       std::to_string(report.matrix.entries.size()) + " tensors over " +
       std::to_string(report.matrix.n_chunks) + " chunks of " +
       std::to_string(report.matrix.chunk_tokens) + " tokens; " +
       std::to_string(report.n_computed_tokens) + " computed in " +
       HumanMs(ms) + ", " +
       Fixed(1000.0 * static_cast<double>(report.n_computed_tokens) / ms, 1) +
       " tokens/s");
  return {};
}

}  // namespace

void AddImatrix(const Command& program, int& exit_code) {
  auto args = std::make_shared<ImatrixArgs>();
  Command command = program.Sub(
      "imatrix",
      "Measure which inputs of a GGUF model's layers are large for a text, for "
      "hearth quantize --imatrix (or llama-quantize)");
  args->base.AddModel(command);
  AddTextOption(command, args->text_file);
  command.Name("--out,--output,-o", args->out, "the GGUF file to write")
      .Required();
  AddChunkOptions(command, args->options.context_tokens,
                  args->options.n_chunks_max);
  command.Flag("--force", args->force,
               "replace a file that is no importance matrix");
  command.Flag("--quiet,-q", args->quiet, "no progress, notes or summary");
  command.Run(exit_code, [args] {
    const auto done = Write(*args);
    if (done.ok()) return kOk;
    const int code = Fail({done.error().code, WithForce(done.error().message)});
    return done.error().code == Code::kCancelled ? kInterrupted : code;
  });
}

}  // namespace hearth::cli
