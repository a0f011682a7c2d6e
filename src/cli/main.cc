// The hearth program: text on stdout, everything else on stderr.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdio>
#include <string>

#include "cli/command.h"
#include "hearth/version.h"

namespace hearth::cli {
namespace {

// Initialised before main: as near to the start of the process as a program
// can get by itself.
const auto kProcessStart = std::chrono::steady_clock::now();

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
  AddSample(app, exit_code);
  AddChat(app, exit_code);
  AddInspect(app, exit_code);
  AddLogits(app, exit_code);
  AddTokenize(app, exit_code);
  AddDetokenize(app, exit_code);
  AddCache(app, exit_code);
  AddTemplate(app, exit_code);
  AddConvert(app, exit_code);
  AddQuantize(app, exit_code);
  AddInit(app, exit_code);
  AddBench(app, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    const int code = app.exit(error);
    return code == 0 ? kOk : kUsage;
  }
  return exit_code;
}
