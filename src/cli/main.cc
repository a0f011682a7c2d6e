// The hearth program: text on stdout, everything else on stderr.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <exception>
#include <iterator>
#include <new>
#include <sstream>
#include <string_view>

#include "cli/options/command.h"
#include "cli/options/foreign_words.h"

namespace hearth::cli {
namespace {

struct Known {
  const char* name;
  void (*add)(const Command& program, int& exit_code);
};
constexpr Known kCommands[] = {
    {"sample", AddSample},     {"chat", AddChat},
    {"inspect", AddInspect},   {"logits", AddLogits},
    {"tokenize", AddTokenize}, {"detokenize", AddDetokenize},
    {"cache", AddCache},       {"template", AddTemplate},
    {"convert", AddConvert},   {"quantize", AddQuantize},
    {"init", AddInit},         {"bench", AddBench},
    {"serve", AddServe},       {"perplexity", AddPerplexity},
    {"imatrix", AddImatrix}};

const Known* Find(std::string_view name) {
  const auto* one =
      std::find_if(std::begin(kCommands), std::end(kCommands),
                   [name](const Known& known) { return known.name == name; });
  return one == std::end(kCommands) ? nullptr : one;
}

// The one that is called, or all when `called` is none of them: describing
// every option of every command takes a start half a millisecond.
void AddCommands(CLI::App& app, int& exit_code, const Known* called) {
  const Command program(app);
  for (const Known& known : kCommands) {
    if (called == nullptr || called == &known) known.add(program, exit_code);
  }
}

std::vector<std::string> CommandNames() {
  std::vector<std::string> names;
  for (const Known& known : kCommands) names.emplace_back(known.name);
  return names;
}

// The command that the line asks for, as deep as it was understood.
const CLI::App* Innermost(const CLI::App* app) {
  while (!app->get_subcommands().empty()) app = app->get_subcommands().front();
  return app;
}

// What the parser has to say of the line, with the nearest word it knows.
int WrongUsage(const CLI::App& app, const CLI::ParseError& error) {
  std::string message = error.what();
  const CLI::App* command = Innermost(&app);
  for (const std::string& word : app.remaining(true)) {
    std::vector<std::string> known;
    if (word.starts_with('-')) {
      for (const CLI::Option* option : command->get_options()) {
        for (const std::string& name : option->get_lnames()) {
          known.push_back("--" + name);
        }
      }
      message = word.substr(0, word.find('=')) + ": no option of " +
                command->get_name() +
                DidYouMean(word.substr(0, word.find('=')), known);
    } else if (!command->get_subcommands(nullptr).empty()) {
      for (const CLI::App* sub : command->get_subcommands(nullptr)) {
        known.push_back(sub->get_name());
      }
      message = "no command " + command->get_name() + " " + word +
                DidYouMean(word, known);
    } else {
      message = "\"" + word + "\" is one argument too many";
    }
    break;
  }
  std::replace(message.begin(), message.end(), '\n', ' ');
  return Fail({Code::kInvalidArgument,
               message + "; `hearth " +
                   (command == &app ? "" : command->get_name() + " ") +
                   "--help` lists what there is"});
}

int Main(int argc, char** argv) {
  HoldStandardStreams();
  CLI::App app{
      "hearth: runs language models on this machine and keeps their KV cache "
      "warm across processes"};
  app.name("hearth");
  app.set_version_flag("--version", [] { return VersionText(); });
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted. "
      "Documents: docs/cli.md.");
  const std::string_view first = argc > 1 ? argv[1] : "";
  const Known* called = Find(first);
  if (called == nullptr && !first.empty() && !first.starts_with('-')) {
    return Fail({Code::kInvalidArgument, "no command \"" + std::string(first) +
                                             "\"" +
                                             DidYouMean(first, CommandNames()) +
                                             "; `hearth --help` lists them"});
  }
  const std::string foreign = ForeignWord(
      std::vector<std::string>(argv + std::min(argc, 1), argv + argc));
  if (!foreign.empty()) return Fail({Code::kInvalidArgument, foreign});
  int exit_code = kOk;
  AddCommands(app, exit_code, called);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // Help and version are "errors" to the parser, with exit code 0.
    if (error.get_exit_code() == 0) {
      std::ostringstream out;
      const int code = app.exit(error, out, out);
      Print(out.str());
      return FinishOutput(code);
    }
    return WrongUsage(app, error);
  }
  return FinishOutput(exit_code);
}

}  // namespace

}  // namespace hearth::cli

// What the library could not make an error of. Written without memory of its
// own, of which there may be none.
int main(int argc, char** argv) {
  try {
    return hearth::cli::Main(argc, argv);
  } catch (const std::bad_alloc&) {
    std::fputs(
        "hearth: the machine has no memory left; end other programs, or use a "
        "smaller model or context\n",
        stderr);
  } catch (const std::exception& error) {
    std::fputs("hearth: ", stderr);
    std::fputs(error.what(), stderr);
    std::fputs("\n", stderr);
  }
  return hearth::cli::kFailed;
}
