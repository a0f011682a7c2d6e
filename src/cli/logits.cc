// hearth logits: every position's logits as a safetensors file, for checking
// against other engines.
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/input.h"
#include "hearth/engine.h"

namespace hearth::cli {
namespace {

struct LogitsArgs {
  EngineOptions engine;
  std::string ids_file;
  std::string out;
  std::string kv_quantize = "fp32";
  std::string rope_rounding = "exact";
  std::vector<int> chunks;
};

Result<void> Run(LogitsArgs& args) {
  const auto storage = KvStorageNamed(args.kv_quantize);
  if (!storage.has_value()) {
    return {Code::kInvalidArgument,
            "--kv-quantize " + args.kv_quantize + ": use fp32, fp16 or bf16"};
  }
  args.engine.kv_storage = *storage;
  const auto rounding = RopeRoundingNamed(args.rope_rounding);
  if (!rounding.has_value()) {
    return {Code::kInvalidArgument, "--rope-rounding " + args.rope_rounding +
                                        ": use exact, bf16 or fp16"};
  }
  args.engine.rope_rounding = *rounding;
  HEARTH_ASSIGN(const std::string text, ReadInput(args.ids_file));
  HEARTH_ASSIGN(const auto ids, ParseIds(text, args.ids_file));
  if (ids.empty()) {
    return {Code::kInvalidArgument, args.ids_file + ": no token ids"};
  }
  HEARTH_ASSIGN(auto engine, Engine::Open(args.engine));
  HEARTH_ASSIGN(const auto logits, engine->Logits(ids, args.chunks));
  return WriteFloatMatrix(args.out, "logits", logits,
                          engine->info().vocab_size);
}

}  // namespace

void AddLogits(CLI::App& app, int& exit_code) {
  auto args = std::make_shared<LogitsArgs>();
  CLI::App* command = app.add_subcommand(
      "logits", "Write the logits of every position of a token sequence");
  command->add_option("MODEL", args->engine.model_path,
                      "default: the model inside the program");
  command->add_option("--ids", args->ids_file, "JSON array of token ids")
      ->required();
  command->add_option("--out", args->out,
                      "safetensors file: logits float32 [T, vocab]")
      ->required();
  command->add_option("--chunks", args->chunks,
                      "step sizes, comma separated; the last one repeats")
      ->delimiter(',');
  command->add_option("--kv-quantize", args->kv_quantize, "fp32, fp16, bf16")
      ->capture_default_str();
  command->add_option("--rope-rounding", args->rope_rounding,
                      "exact; or bf16, fp16 to match a reference that cast its "
                      "rope frequencies with the weights")
      ->capture_default_str();
  command->add_option("--threads,-t", args->engine.n_threads)
      ->check(CLI::PositiveNumber);
  command->callback([args, &exit_code] {
    const auto done = Run(*args);
    if (!done.ok()) exit_code = Fail(done.error());
  });
}

}  // namespace hearth::cli
