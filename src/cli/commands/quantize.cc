// hearth quantize and convert: models into other files.
#include <memory>
#include <string>

#include "cli/commands/model_writing.h"
#include "cli/options/command.h"
#include "hearth/convert.h"

namespace hearth::cli {
namespace {

struct Args {
  std::string in, out, type, imatrix;
  ModelWriting writing;
};

}  // namespace

void AddQuantize(const Command& program, int& exit_code) {
  auto args = std::make_shared<Args>();
  Command command = program.Sub(
      "quantize",
      "Write a model as GGUF with smaller numbers; what could not be written "
      "in the type asked for is listed on stderr");
  command.Name("IN", args->in, "any model").Required();
  command.Name("OUT", args->out, "the GGUF file to write; - is standard output")
      .Required();
  const Option type =
      command.Name("TYPE", args->type,
                   "Q4_K_M, Q4_K_S, Q5_K_M, Q5_K_S, Q3_K_L, Q3_K_M, Q3_K_S, "
                   "Q2_K, Q6_K, IQ4_XS, IQ4_NL, Q4_0, Q4_1, Q5_0, Q5_1, Q8_0, "
                   "BF16, F16 or F32, in any case");
  command.Name("--type", args->type, "the same").Excludes(type);
  command.Name("--imatrix", args->imatrix,
               "importance matrix of the model, from hearth imatrix or "
               "llama-imatrix: errors count by it");
  args->writing.AddOptions(command);
  command.Run(exit_code, [args] {
    if (args->type.empty()) {
      return Fail({Code::kInvalidArgument,
                   "say which type: hearth quantize IN OUT Q4_K_M; --help "
                   "lists them"});
    }
    return args->writing.Run(
        "quantize", args->out, [&args](const WriteOptions& options) {
          return QuantizeModel(args->in, args->out, args->type, options,
                               args->imatrix);
        });
  });
}

void AddConvert(const Command& program, int& exit_code) {
  auto args = std::make_shared<Args>();
  Command command = program.Sub(
      "convert", "Write a model as another kind of file; numbers stay");
  command.Name("IN", args->in, "any model").Required();
  command
      .Name("OUT", args->out, "x.gguf, x.tinygpt, or a Hugging Face directory")
      .Required();
  args->writing.AddOptions(command);
  command.Run(exit_code, [args] {
    return args->writing.Run(
        "convert", args->out, [&args](const WriteOptions& options) {
          return ConvertModel(args->in, args->out, options);
        });
  });
}

}  // namespace hearth::cli
