// hearth init: a randomly initialised model of a preset's shape, for timing.
#include <memory>
#include <string>

#include "cli/commands/model_writing.h"
#include "cli/options/command.h"
#include "hearth/convert.h"

namespace hearth::cli {

void AddInit(const Command& program, int& exit_code) {
  struct Args {
    std::string preset, out;
    int n_kv_heads = 0;
    bool yoco = false;
    std::optional<std::uint64_t> seed = 0;
    ModelWriting writing;
  };
  auto args = std::make_shared<Args>();
  Command command = program.Sub(
      "init", "Write a randomly initialised .tinygpt model, for timing");
  command
      .Name("PRESET", args->preset,
            "tiny, small, huge, mega, behemoth or titan")
      .Required();
  command.Name("--out,-o", args->out, "the file to write").Required();
  command.Integer("--kv-heads", args->n_kv_heads, 1, 1 << 16,
                  "KV heads; default: as many as heads");
  command.Flag("--yoco", args->yoco,
               "the second half attends to the middle layer's KV: half the KV "
               "bytes");
  command.Seed("--seed", args->seed, "of the weights").Default("0");
  args->writing.AddOptions(command);
  command.Run(exit_code, [args] {
    if (!args->seed.has_value()) {
      return Fail({Code::kInvalidArgument,
                   "--seed -1: a seed names one model for good; give a number "
                   "from 0"});
    }
    return args->writing.Run(
        "init", args->out,
        [&args](const WriteOptions& options) -> Result<ConvertReport> {
          HEARTH_TRY(InitModel(args->preset, args->out, args->n_kv_heads,
                               args->yoco, *args->seed, options));
          return ConvertReport{};
        });
  });
}

}  // namespace hearth::cli
