// hearth logits: every position's logits as a safetensors file, for checking
// against other engines.
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/engine_args.h"
#include "cli/input.h"
#include "hearth/convert.h"
#include "hearth/engine.h"

namespace hearth::cli {
namespace {

struct LogitsArgs {
  EngineArgs engine;
  std::string ids_file;
  std::string out;
  std::string rope_rounding = "exact";
  std::vector<int> chunks;
};

Result<void> Run(LogitsArgs& args) {
  HEARTH_TRY(args.engine.Finalize());
  const auto rounding = RopeRoundingNamed(args.rope_rounding);
  if (!rounding.has_value()) {
    return {Code::kInvalidArgument, "--rope-rounding " + args.rope_rounding +
                                        ": use exact, bf16 or fp16"};
  }
  args.engine.engine.rope_rounding = *rounding;
  HEARTH_ASSIGN(const std::string text, ReadInput(args.ids_file));
  HEARTH_ASSIGN(const auto ids, ParseIds(text, args.ids_file));
  if (ids.empty()) {
    return {Code::kInvalidArgument, args.ids_file + ": no token ids"};
  }
  HEARTH_ASSIGN(auto engine, Engine::Open(args.engine.engine));
  HEARTH_ASSIGN(const auto logits, engine->Logits(ids, args.chunks));
  return WriteFloatMatrix(args.out, "logits", logits,
                          engine->info().vocab_size);
}

}  // namespace

void AddLogits(CLI::App& app, int& exit_code) {
  auto args = std::make_shared<LogitsArgs>();
  CLI::App* command = app.add_subcommand(
      "logits", "Write the logits of every position of a token sequence");
  args->engine.AddModel(*command);
  command->add_option("--ids", args->ids_file, "JSON array of token ids")
      ->required();
  command
      ->add_option("--out", args->out,
                   "safetensors file: logits float32 [T, vocab]")
      ->required();
  command
      ->add_option("--chunks", args->chunks,
                   "step sizes, comma separated; the last one repeats")
      ->delimiter(',');
  args->engine.AddKvFormat(*command);
  command
      ->add_option("--rope-rounding", args->rope_rounding,
                   "exact; or bf16, fp16 to match a reference that cast its "
                   "rope frequencies with the weights")
      ->capture_default_str();
  command->callback([args, &exit_code] {
    const auto done = Run(*args);
    if (!done.ok()) exit_code = Fail(done.error());
  });
}

}  // namespace hearth::cli
