// hearth quantize and convert: models into other files.
#include <memory>
#include <string>

#include "cli/command.h"
#include "hearth/convert.h"

namespace hearth::cli {
namespace {

int Print(const Result<ConvertReport>& report) {
  if (!report.ok()) return Fail(report.error());
  for (const std::string& note : report->notes) Note(note);
  return kOk;
}

struct Args {
  std::string in, out, type;
};

}  // namespace

void AddQuantize(CLI::App& app, int& exit_code) {
  auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand(
      "quantize",
      "Write a model as GGUF with smaller numbers; what could not be written "
      "in the type asked for is listed on stderr");
  command->add_option("IN", args->in, "any model")->required();
  command->add_option("OUT", args->out, "the GGUF file to write")->required();
  command
      ->add_option("--type", args->type,
                   "Q8_0, Q4_0, Q4_K or Q6_K; embedding and output: Q6_K, with "
                   "Q8_0 that")
      ->required();
  command->callback([args, &exit_code] {
    exit_code = Print(QuantizeModel(args->in, args->out, args->type));
  });
}

void AddConvert(CLI::App& app, int& exit_code) {
  auto args = std::make_shared<Args>();
  CLI::App* command = app.add_subcommand(
      "convert", "Write a model as another kind of file; numbers stay");
  command->add_option("IN", args->in, "any model")->required();
  command
      ->add_option("OUT", args->out,
                   "x.gguf, x.tinygpt, or a Hugging Face directory")
      ->required();
  command->callback([args, &exit_code] {
    exit_code = Print(ConvertModel(args->in, args->out));
  });
}

}  // namespace hearth::cli
