// hearth template: what a chat template makes of a conversation.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/input.h"
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

void AddTemplate(CLI::App& app, int& exit_code) {
  auto args = std::make_shared<TemplateArgs>();
  CLI::App* command = app.add_subcommand(
      "template",
      "Render a chat template; HEARTH_NOW (ISO 8601) fixes its clock");
  command->add_option("MODEL", args->source, "a model or a .jinja file")
      ->required();
  command
      ->add_option("--messages", args->messages_file,
                   "JSON array of messages; - is standard input")
      ->required();
  command->add_option("--tools", args->tools_file, "JSON array of tools");
  command->add_option("--kwargs", args->kwargs,
                      "JSON object of further variables; may set bos_token, "
                      "eos_token, unk_token");
  command->add_flag("--no-generation-prompt", args->no_generation_prompt);
  command->callback([args, &exit_code] {
    const auto text = Render(*args);
    if (!text.ok()) {
      exit_code = Fail(text.error());
      return;
    }
    std::fwrite(text->data(), 1, text->size(), stdout);
  });
}

}  // namespace hearth::cli
