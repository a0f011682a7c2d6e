// hearth chat: a conversation in the terminal.
#include "hearth/chat.h"

#include <unistd.h>

#include <filesystem>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "base/json.h"
#include "cli/chat/chat_command.h"
#include "cli/chat/line_editor.h"
#include "cli/commands/model_writing.h"
#include "cli/commands/sample_report.h"
#include "cli/options/command.h"
#include "cli/options/engine_args.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/units.h"

namespace hearth::cli {
namespace {

struct ChatArgs {
  EngineArgs base;
  ConversationOptions conversation;
  std::string file;  // --conversation
  int n_tokens = -1;
  bool quiet = false;
  bool verbose = false;
};

std::string FooterText(const TurnReport& r, double first_token_ms,
                       bool verbose) {
  std::string text = "[" + std::to_string(r.sync.prompt_tokens) + " tokens, " +
                     std::to_string(r.sync.reused_tokens) + " reused (" +
                     r.sync.reuse_tier + "), first token " +
                     HumanMs(first_token_ms) + ", " +
                     DecodeText(static_cast<int>(r.generate.token_ids.size()),
                                r.generate.decode_ms);
  if (verbose) {
    text += ", lookup " + HumanMs(r.sync.lookup_ms) + ", prefill " +
            HumanMs(r.sync.prefill_ms) + ", KV " +
            HumanBytes(r.kv.logical_bytes) + " (" +
            HumanBytes(r.kv.physical_bytes) + " physical)";
    if (!r.sync.miss_reason.empty()) text += "; " + r.sync.miss_reason;
  }
  const std::string speculation = SpeculationText(r.generate.speculation);
  if (!speculation.empty()) text += ", " + speculation;
  return Escaped(text) + "]\n";
}

// The library's words for it would be of replacing the file, which chat never
// does.
Error NoConversation(const std::string& path) {
  return {Code::kInvalidArgument,
          path +
              ": exists and is no conversation, or is no file; choose another "
              "name"};
}

class Chat {
 public:
  Chat(ChatArgs& args, Engine& engine, Conversation& conversation)
      : args_(args), engine_(engine), conversation_(conversation) {
    settings_.sampling = args.base.sampling;
    settings_.n_tokens = args.n_tokens;
  }

  int Run() {
    if (editor_.terminal() && !args_.quiet) {
      Note(engine_.info().name + "; /help lists the commands");
    }
    while (true) {
      const std::string prompt = editor_.terminal() ? "> " : "";
      const LineRead read =
          ReadMessage(editor_, prompt, prompt.empty() ? "" : "| ");
      if (read.kind == LineRead::Kind::kEnd) break;
      if (read.kind == LineRead::Kind::kCtrlC) {
        PrintStatus("(/exit or ctrl-D leaves)\n");
        continue;
      }
      if (read.text.empty()) continue;
      const auto command = ParseChatCommand(read.text);
      if (!command.ok()) {
        Note(command.error().message);
      } else if (command->verb == ChatVerb::kExit) {
        break;
      } else if (command->verb == ChatVerb::kNone) {
        Send(MessageOf(read.text));
      } else {
        Do(*command);
      }
    }
    return code_;
  }

 private:
  void Report(const Result<void>& done, const std::string& said) {
    Note(done.ok() ? said : done.error().message);
  }

  void Do(const ChatCommand& command) {
    switch (command.verb) {
      case ChatVerb::kHelp:
        PrintStatus(ChatHelp());
        break;
      case ChatVerb::kClear:
        conversation_.Clear();
        Changed("cleared");
        break;
      case ChatVerb::kSave:
        Save(command.rest);
        break;
      case ChatVerb::kLoad:
        Load(command.rest);
        break;
      case ChatVerb::kUndo:
        if (const auto taken = conversation_.Undo(); taken.ok()) {
          Changed("taken back; " + Turns());
        } else {
          Note(taken.error().message);
        }
        break;
      case ChatVerb::kRetry:
        if (const auto again = conversation_.Undo(); again.ok()) {
          ++settings_.sampling.seed;  // the same draws would say the same
          Send(*again);
        } else {
          Note(again.error().message);
        }
        break;
      case ChatVerb::kDrop:
        if (const auto done = conversation_.DropOldest(); done.ok()) {
          Changed("the oldest turn is forgotten; " + Turns());
        } else {
          Note(done.error().message);
        }
        break;
      case ChatVerb::kSystem:
        conversation_.SetSystem(command.rest);
        Changed(command.rest.empty() ? "no system message"
                                     : "the system message is another now");
        break;
      case ChatVerb::kSet:
        Set(command.rest);
        break;
      case ChatVerb::kNone:
      case ChatVerb::kExit:
        break;
    }
  }

  std::string Turns() const {
    return std::to_string(conversation_.n_turns()) + " turns are left";
  }

  // Keeps --conversation as the user sees it.
  void Changed(const std::string& said) {
    Note(said);
    Keep();
  }

  void Keep() {
    if (args_.file.empty()) return;
    const auto saved = conversation_.Save(args_.file);
    code_ = saved.ok() ? kOk : Fail(saved.error());
  }

  void Save(const std::string& path) {
    if (path.empty()) {
      Note("/save needs a file name");
      return;
    }
    const auto saved = conversation_.Save(path);
    if (!saved.ok() && saved.error().code == Code::kInvalidArgument) {
      Note(NoConversation(path).message);
      return;
    }
    Report(saved, "saved to " + path);
  }

  void Load(const std::string& path) {
    if (path.empty()) {
      Note("/load needs a file name");
      return;
    }
    const auto loaded = conversation_.Load(path);
    Report(loaded, "loaded " + path + "; " + Turns());
    if (loaded.ok()) Keep();
  }

  void Set(const std::string& assignment) {
    ChatSettings wanted = settings_;
    const auto said = SetChat(assignment, wanted);
    if (!said.ok()) {
      Note(said.error().message);
      return;
    }
    if (wanted.thinking != settings_.thinking) {
      Json kwargs = Json::object();
      if (!args_.conversation.kwargs_json.empty()) {
        const auto given =
            ParseJson(args_.conversation.kwargs_json, "--kwargs");
        if (given.ok()) kwargs = *given;
      }
      kwargs["enable_thinking"] = *wanted.thinking;
      const auto set = conversation_.SetKwargs(kwargs.dump());
      if (!set.ok()) {
        Note(set.error().message);
        return;
      }
    }
    settings_ = wanted;
    Note(*said);
  }

  // A message and its answer. A full context is never made smaller in silence.
  void Send(const std::string& user) {
    while (true) {
      const auto full = Turn(user);
      if (!full.has_value()) break;
      Note(*full +
           "; /drop forgets the oldest turn, /clear all of them, and "
           "--context N gives more room (inspect shows what it costs)");
      if (conversation_.n_turns() == 0 || !editor_.terminal()) break;
      const LineRead answer =
          editor_.Read("forget the oldest turn and go on? [y/N] ");
      if (answer.kind != LineRead::Kind::kLine ||
          (answer.text != "y" && answer.text != "yes")) {
        break;
      }
      const auto dropped = conversation_.DropOldest();
      if (!dropped.ok()) {
        Note(dropped.error().message);
        break;
      }
      Note("the oldest turn is forgotten; " + Turns());
    }
    Keep();
  }

  // Why there was no room for the message; nothing when it was answered, or
  // failed in another way (said here).
  std::optional<std::string> Turn(const std::string& user) {
    const double start = SinceStartMs();
    double first = 0;
    std::optional<Progress> progress(std::in_place, "prefill", Unit::kTokens,
                                     args_.quiet);
    GenerateOptions options;
    options.n_tokens_max = settings_.n_tokens < 0
                               ? std::numeric_limits<int>::max()
                               : settings_.n_tokens;
    options.sampling = settings_.sampling;
    bool written = true;
    const auto report = conversation_.Turn(
        user, options,
        [&](int done, int total) {
          // A draft model reads the prompt after the first token.
          if (progress.has_value()) {
            progress->Update(static_cast<std::uint64_t>(done),
                             static_cast<std::uint64_t>(total));
          }
          return !Interrupted();
        },
        [&](const Token& token) {
          if (first == 0) {
            first = SinceStartMs();
            progress.reset();
          }
          written = PrintNow(terminal_out_ ? EscapedLines(token.text)
                                           : std::string(token.text));
          return written && !Interrupted();
        });
    progress.reset();
    ClearInterrupt();
    if (!report.ok()) {
      if (report.error().code == Code::kResourceFull) {
        return report.error().message;
      }
      Note(report.error().message);
      return std::nullopt;
    }
    PrintNow("\n");
    for (const std::string& warning : report->sync.warnings) Note(warning);
    SayWhyCut(report->generate.stop);
    if (!args_.quiet) {
      PrintStatus(FooterText(*report, first - start, args_.verbose));
    }
    return std::nullopt;
  }

  void SayWhyCut(StopReason reason) {
    if (reason == StopReason::kLength) {
      Note("cut after " + std::to_string(settings_.n_tokens) +
           " tokens; /set tokens -1 takes the limit away");
    } else if (reason == StopReason::kContext) {
      Note("cut: the context of " + std::to_string(engine_.context_tokens()) +
           " tokens is full; /drop forgets the oldest turn, /clear all of "
           "them, and --context N gives more room");
    } else if (reason == StopReason::kCaller) {
      Note("stopped");
    }
  }

  ChatArgs& args_;
  Engine& engine_;
  Conversation& conversation_;
  LineEditor editor_;
  ChatSettings settings_;
  const bool terminal_out_ = ::isatty(STDOUT_FILENO) == 1;
  int code_ = kOk;
};

// Before the model is loaded: whether the conversation can be kept where it is
// wanted, and options that an existing one would ignore.
Result<bool> FindConversation(const ChatArgs& args) {
  if (args.file.empty()) return false;
  const auto checked = CheckConversationFile(args.file);
  if (!checked.ok()) {
    return checked.error().code == Code::kInvalidArgument
               ? NoConversation(args.file)
               : checked.error();
  }
  const bool exists = std::filesystem::exists(args.file);
  if (exists && !args.conversation.system.empty()) {
    return Error{Code::kInvalidArgument,
                 "--system would do nothing: " + args.file +
                     " has its own system message; leave one out, or change "
                     "it with /system"};
  }
  return exists;
}

int RunChat(ChatArgs& args) {
  if (const auto ready = args.base.Finalize(); !ready.ok()) {
    return Fail(ready.error());
  }
  const auto exists = FindConversation(args);
  if (!exists.ok()) return Fail(exists.error());
  args.conversation.now = ClockFromEnvironment();
  auto engine = args.base.Open(args.quiet);
  if (!engine.ok()) return Fail(engine.error());
  auto conversation = OpenConversation(**engine, args.conversation);
  if (!conversation.ok()) return Fail(conversation.error());
  if (*exists) {
    const auto loaded = (*conversation)->Load(args.file);
    if (!loaded.ok()) return Fail(loaded.error());
    Note("going on after " + std::to_string((*conversation)->n_turns()) +
         " turns of " + args.file);
  }
  CatchInterruptsRepeatedly();
  const int code = Chat(args, **engine, **conversation).Run();
  const auto drained =
      (*engine)->DrainSaves(Terminated() ? kDrainSecondsMax : 0);
  if (!drained.ok()) Note(drained.error().message);
  return Terminated() ? kInterrupted : code;
}

}  // namespace

void AddChat(const Command& program, int& exit_code) {
  auto args = std::make_shared<ChatArgs>();
  Command command = program.Sub("chat", "Talk with a model in the terminal");
  args->base.AddModel(command);
  command.Text("--system", args->conversation.system, "the system message");
  command.Name("--template", args->conversation.template_path,
               "a .jinja file instead of the model's own template");
  command.Name("--kwargs", args->conversation.kwargs_json,
               "JSON object of further template variables");
  command.Name("--conversation", args->file,
               "go on with this file if it exists; kept after each turn");
  command
      .Integer("--tokens,-n", args->n_tokens, -1,
               std::numeric_limits<int>::max(),
               "tokens of one answer at most; -1: no limit")
      .Default("-1");
  command.Flag("--quiet,-q", args->quiet, "no footers");
  command.Flag("--verbose,-v", args->verbose, "every figure in the footers");
  args->base.AddSampling(command);
  args->base.AddKv(command);
  args->base.AddDraft(command);
  command.Run(exit_code, [args] { return RunChat(*args); });
}

}  // namespace hearth::cli
