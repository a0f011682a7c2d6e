// hearth chat: a conversation in the terminal.
#include "hearth/chat.h"

#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "cli/command.h"
#include "cli/engine_args.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/sample_report.h"
#include "cli/units.h"

namespace hearth::cli {
namespace {

struct ChatArgs {
  EngineArgs base;
  ConversationOptions conversation;
  std::string file;  // --conversation
  int n_tokens = 1024;
  bool quiet = false;
};

constexpr const char* kHelp =
    "/save FILE  keep the conversation    /load FILE  go on with one\n"
    "/clear      forget all turns         /exit       leave (or ctrl-D)\n"
    "ctrl-C stops an answer.\n";

// One line of input; nothing at its end. A line ending in a backslash goes on.
std::optional<std::string> ReadLine(bool terminal) {
  std::string text;
  while (true) {
    if (terminal) std::fputs(text.empty() ? "> " : "| ", stderr);
    std::string line;
    int c = EOF;
    errno = 0;
    while (!Terminated() && (c = std::fgetc(stdin)) != EOF && c != '\n') {
      line += static_cast<char>(c);
    }
    if (Terminated()) return std::nullopt;
    if (c == EOF && errno == EINTR && Interrupted()) {
      std::clearerr(stdin);
      ClearInterrupt();
      std::fputs("\n(/exit or ctrl-D leaves)\n", stderr);
      text.clear();
      continue;
    }
    text += line;
    if (c == EOF) {
      if (text.empty()) return std::nullopt;
      return text;
    }
    if (text.empty() || text.back() != '\\') return text;
    text.back() = '\n';
  }
}

// Commands of the terminal. False: not one of them.
bool Command(const std::string& line, Conversation& conversation) {
  const auto report = [](const Result<void>& done, const std::string& said) {
    Note(done.ok() ? said : done.error().message);
  };
  const auto blank = line.find(' ');
  const std::string verb = line.substr(0, blank);
  const std::string rest =
      blank == std::string::npos
          ? ""
          : line.substr(line.find_first_not_of(' ', blank));
  if (verb == "/help") {
    std::fputs(kHelp, stderr);
  } else if (verb == "/clear") {
    conversation.Clear();
    Note("cleared");
  } else if ((verb == "/save" || verb == "/load") && rest.empty()) {
    Note(verb + " needs a file name");
  } else if (verb == "/save") {
    report(conversation.Save(rest), "saved to " + rest);
  } else if (verb == "/load") {
    report(conversation.Load(rest), "loaded " + rest);
  } else {
    return false;
  }
  return true;
}

void PrintFooter(const TurnReport& r, double first_token_ms) {
  const int n = static_cast<int>(r.generate.token_ids.size());
  std::string text =
      "[" + std::to_string(r.sync.prompt_tokens) + " tokens, " +
      std::to_string(r.sync.reused_tokens) + " reused (" + r.sync.reuse_tier +
      "), first token " + HumanMs(first_token_ms) + ", " + std::to_string(n) +
      " tokens at " +
      Fixed(r.generate.decode_ms > 0 ? 1000.0 * (n - 1) / r.generate.decode_ms
                                     : 0,
            1) +
      "/s, KV " + HumanBytes(r.kv.logical_bytes);
  const std::string speculation = SpeculationText(r.generate.speculation);
  if (!speculation.empty()) text += ", " + speculation;
  text += "]\n";
  std::fputs(text.c_str(), stderr);
}

void Turn(const ChatArgs& args, Conversation& conversation,
          const std::string& user) {
  const double start = SinceStartMs();
  double first = 0;
  std::optional<PrefillProgress> progress(std::in_place, args.quiet);
  const auto report = conversation.Turn(
      user, {.n_tokens_max = args.n_tokens, .sampling = args.base.sampling},
      [&](int done, int total) {
        // A draft model reads the prompt after the first token.
        if (progress.has_value()) progress->Update(done, total);
        return !Interrupted();
      },
      [&](const Token& token) {
        if (first == 0) {
          first = SinceStartMs();
          progress.reset();
        }
        std::fwrite(token.text.data(), 1, token.text.size(), stdout);
        std::fflush(stdout);
        return !Interrupted();
      });
  progress.reset();
  ClearInterrupt();
  std::fputc('\n', stdout);
  std::fflush(stdout);
  if (!report.ok()) {
    Note(report.error().message);
    return;
  }
  for (const std::string& warning : report->sync.warnings) Note(warning);
  if (!args.quiet) PrintFooter(*report, first - start);
}

int Chat(ChatArgs& args) {
  if (const auto ready = args.base.Finalize(); !ready.ok()) {
    return Fail(ready.error());
  }
  args.conversation.now = ClockFromEnvironment();
  auto engine = Engine::Open(args.base.engine);
  if (!engine.ok()) return Fail(engine.error());
  auto conversation = OpenConversation(**engine, args.conversation);
  if (!conversation.ok()) return Fail(conversation.error());
  if (!args.file.empty() && std::filesystem::exists(args.file)) {
    const auto loaded = (*conversation)->Load(args.file);
    if (!loaded.ok()) return Fail(loaded.error());
    Note("going on after " + std::to_string((*conversation)->n_turns()) +
         " turns of " + args.file);
  }
  const bool terminal = ::isatty(STDIN_FILENO) == 1;
  if (terminal && !args.quiet) {
    Note((*engine)->info().name + "; /help lists the commands");
  }
  CatchInterruptsRepeatedly();
  int code = kOk;
  while (const auto line = ReadLine(terminal)) {
    if (line->empty()) continue;
    if (*line == "/exit" || *line == "/quit") break;
    if (line->front() == '/' && Command(*line, **conversation)) continue;
    Turn(args, **conversation, *line);
    if (args.file.empty()) continue;
    const auto saved = (*conversation)->Save(args.file);
    if (!saved.ok()) code = Fail(saved.error());
  }
  const auto drained =
      (*engine)->DrainSaves(Terminated() ? kDrainSecondsMax : 0);
  if (!drained.ok()) Note("prompt cache not saved: " + drained.error().message);
  return Terminated() ? kInterrupted : code;
}

}  // namespace

void AddChat(CLI::App& app, int& exit_code) {
  auto args = std::make_shared<ChatArgs>();
  CLI::App* command =
      app.add_subcommand("chat", "Talk with a model in the terminal");
  args->base.AddModel(*command);
  command->add_option("--system", args->conversation.system,
                      "the system message");
  command->add_option("--template", args->conversation.template_path,
                      "a .jinja file instead of the model's own template");
  command->add_option("--kwargs", args->conversation.kwargs_json,
                      "JSON object of further template variables");
  command->add_option(
      "--conversation", args->file,
      "go on with this file if it exists; kept after each turn");
  command
      ->add_option("--tokens,-n", args->n_tokens,
                   "tokens of one answer at most")
      ->capture_default_str();
  args->base.AddSampling(*command);
  args->base.AddKv(*command);
  args->base.AddDraft(*command);
  command->add_flag("--quiet,-q", args->quiet, "no footers");
  command->callback([args, &exit_code] { exit_code = Chat(*args); });
}

}  // namespace hearth::cli
