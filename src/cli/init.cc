// hearth init: a randomly initialised model of a preset's shape, for timing.
#include <memory>
#include <string>

#include "cli/command.h"
#include "hearth/convert.h"

namespace hearth::cli {

void AddInit(CLI::App& app, int& exit_code) {
  struct Args {
    std::string preset, out;
    int n_kv_heads = 0;
    bool yoco = false;
    std::uint64_t seed = 0;
  };
  auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand(
      "init", "Write a randomly initialised .tinygpt model, for timing");
  command
      ->add_option("PRESET", args->preset,
                   "tiny, small, huge, mega, behemoth or titan")
      ->required();
  command->add_option("--out", args->out, "the file to write")->required();
  command
      ->add_option("--kv-heads", args->n_kv_heads,
                   "KV heads; default: as many as heads")
      ->check(CLI::PositiveNumber);
  command->add_flag("--yoco", args->yoco,
                    "the second half attends to the middle layer's KV: half "
                    "the KV bytes");
  command->add_option("--seed", args->seed)->capture_default_str();
  command->callback([args, &exit_code] {
    const auto done = InitModel(args->preset, args->out, args->n_kv_heads,
                                args->yoco, args->seed);
    if (!done.ok()) exit_code = Fail(done.error());
  });
}

}  // namespace hearth::cli
