// hearth logits: every position's logits as a safetensors file, for checking
// against other engines.
#include <memory>
#include <string>
#include <vector>

#include "cli/commands/model_writing.h"
#include "cli/options/command.h"
#include "cli/options/engine_args.h"
#include "cli/terminal/input.h"
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
  bool force = false;
};

Result<void> Run(LogitsArgs& args) {
  HEARTH_TRY(args.engine.Finalize());
  const auto rounding = RopeRoundingNamed(args.rope_rounding);
  if (!rounding.has_value()) {
    return {Code::kInvalidArgument, "--rope-rounding " + args.rope_rounding +
                                        ": use exact, bf16 or fp16"};
  }
  args.engine.engine.rope_rounding = *rounding;
  const WriteOptions options{.replace = args.force};
  HEARTH_TRY(CheckFloatMatrix(args.out, "logits", options));
  HEARTH_ASSIGN(const std::string text, ReadInput(args.ids_file));
  HEARTH_ASSIGN(const auto ids, ParseIds(text, args.ids_file));
  if (ids.empty()) {
    return {Code::kInvalidArgument, args.ids_file + ": no token ids"};
  }
  HEARTH_ASSIGN(auto engine, Engine::Open(args.engine.engine));
  HEARTH_ASSIGN(const auto logits, engine->Logits(ids, args.chunks));
  return WriteFloatMatrix(args.out, "logits", logits, engine->info().vocab_size,
                          options);
}

}  // namespace

void AddLogits(const Command& program, int& exit_code) {
  auto args = std::make_shared<LogitsArgs>();
  // Others compute in full precision.
  args->engine.kv_quantize = "fp32";
  Command command = program.Sub(
      "logits", "Write the logits of every position of a token sequence");
  args->engine.AddModel(command);
  command.Name("--ids", args->ids_file, "JSON array of token ids; - is stdin")
      .Required();
  command
      .Name("--out,-o", args->out,
            "safetensors file: logits float32 [T, vocab]; - is standard output")
      .Required();
  command.Flag("--force", args->force,
               "replace a file that is not such a file of logits");
  command.Integers("--chunks", args->chunks, 1, 1 << 24,
                   "step sizes, comma separated; the last one repeats");
  command
      .Name("--rope-rounding", args->rope_rounding,
            "exact; or bf16, fp16 to match a reference that cast its rope "
            "frequencies with the weights")
      .Default(args->rope_rounding);
  args->engine.AddKvFormat(command);
  command.Run(exit_code, [args] {
    const auto done = Run(*args);
    if (done.ok()) return kOk;
    return Fail({done.error().code, WithForce(done.error().message)});
  });
}

}  // namespace hearth::cli
