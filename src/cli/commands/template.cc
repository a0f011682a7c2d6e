// hearth template: what a chat template makes of a conversation.
#include <cstdlib>
#include <memory>
#include <string>

#include "cli/options/command.h"
#include "cli/terminal/input.h"
#include "hearth/chat.h"

namespace hearth::cli {
namespace {

struct TemplateArgs {
  std::string source, messages_file, tools_file, kwargs;
  bool no_generation_prompt = false;
};

Result<std::string> Render(const TemplateArgs& args) {
  TemplateRequest request;
  HEARTH_ASSIGN(request.messages_json, ReadInput(args.messages_file));
  if (!args.tools_file.empty()) {
    HEARTH_ASSIGN(request.tools_json, ReadInput(args.tools_file));
  }
  request.kwargs_json = args.kwargs;
  request.add_generation_prompt = !args.no_generation_prompt;
  request.now = ClockFromEnvironment();
  return RenderChatTemplate(args.source, request);
}

}  // namespace

std::string ClockFromEnvironment() {
  const char* now = std::getenv("HEARTH_NOW");
  return now == nullptr ? "" : now;
}

void AddTemplate(const Command& program, int& exit_code) {
  auto args = std::make_shared<TemplateArgs>();
  Command command = program.Sub(
      "template",
      "Render a chat template; HEARTH_NOW (ISO 8601) fixes its clock");
  command.Name("MODEL", args->source, "a model or a .jinja file").Required();
  command
      .Name("--messages", args->messages_file,
            "JSON array of messages; - is standard input")
      .Required();
  command.Name("--tools", args->tools_file, "JSON array of tools");
  command.Name("--kwargs", args->kwargs,
               "JSON object of further variables; may set bos_token, "
               "eos_token, unk_token");
  command.Flag("--no-generation-prompt", args->no_generation_prompt,
               "end where the last message ends");
  command.Run(exit_code, [args] {
    const auto text = Render(*args);
    if (!text.ok()) return Fail(text.error());
    Print(*text);
    return kOk;
  });
}

}  // namespace hearth::cli
