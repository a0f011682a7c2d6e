// The hearth program: text on stdout, everything else on stderr.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <iterator>
#include <string_view>

#include "cli/command.h"
#include "hearth/version.h"

namespace hearth::cli {
namespace {

// Initialised before main: as near to the start of the process as a program
// can get by itself.
const auto kProcessStart = std::chrono::steady_clock::now();

struct Command {
  const char* name;
  void (*add)(CLI::App& app, int& exit_code);
};
constexpr Command kCommands[] = {
    {"sample", AddSample},     {"chat", AddChat},
    {"inspect", AddInspect},   {"logits", AddLogits},
    {"tokenize", AddTokenize}, {"detokenize", AddDetokenize},
    {"cache", AddCache},       {"template", AddTemplate},
    {"convert", AddConvert},   {"quantize", AddQuantize},
    {"init", AddInit},         {"bench", AddBench}};

// The one that is called, or all when `called` is none of them: describing
// every option of every command takes a start half a millisecond.
void AddCommands(CLI::App& app, int& exit_code, std::string_view called) {
  const auto* one = std::find_if(
      std::begin(kCommands), std::end(kCommands),
      [called](const Command& command) { return command.name == called; });
  for (const Command& command : kCommands) {
    if (one == std::end(kCommands) || one == &command) {
      command.add(app, exit_code);
    }
  }
}

}  // namespace

double SinceStartMs() {
  return std::chrono::duration<double, std::milli>(
             std::chrono::steady_clock::now() - kProcessStart)
      .count();
}

int Fail(const Error& error) {
  std::fprintf(stderr, "hearth: %s\n", error.message.c_str());
  return error.code == Code::kInvalidArgument ? kUsage : kFailed;
}

void Note(const std::string& text) {
  std::fprintf(stderr, "hearth: %s\n", text.c_str());
}

}  // namespace hearth::cli

int main(int argc, char** argv) {
  using namespace hearth::cli;
  CLI::App app{
      "hearth: runs language models on this machine and keeps their KV cache "
      "warm across processes"};
  app.set_version_flag("--version", hearth::kVersion);
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.");
  int exit_code = kOk;
  AddCommands(app, exit_code, argc > 1 ? argv[1] : "");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kOk : kUsage;
  }
  return exit_code;
}
