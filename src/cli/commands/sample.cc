// hearth sample: one prompt in, text out.
#include <unistd.h>

#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "cli/commands/sample_report.h"
#include "cli/options/answer_form.h"
#include "cli/options/command.h"
#include "cli/options/engine_args.h"
#include "cli/terminal/input.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "hearth/chat.h"
#include "hearth/engine.h"

namespace hearth::cli {
namespace {

struct SampleArgs {
  EngineArgs base;
  AnswerFormArgs form;
  ConversationOptions chat_options;
  std::string prompt;
  std::string prompt_file;
  int n_tokens = 200;
  bool ignore_eos = false;
  bool chat = false;
  bool no_cache = false;
  bool json = false;
  bool quiet = false;
  bool verbose = false;
  Option prompt_option;

  GenerateOptions generate() const {
    GenerateOptions options;
    // -1: until the model ends or the context is full.
    options.n_tokens_max =
        n_tokens < 0 ? std::numeric_limits<int>::max() : n_tokens;
    options.ignore_eos = ignore_eos;
    options.sampling = base.sampling;
    return options;
  }
};

Result<std::string> PromptText(const SampleArgs& args) {
  if (!args.prompt_file.empty()) return ReadPrompt(args.prompt_file);
  if (args.prompt_option.given()) return args.prompt;
  return {Code::kInvalidArgument,
          "give the prompt with --prompt TEXT or --prompt-file FILE"};
}

Result<void> Finalize(SampleArgs& args) {
  HEARTH_TRY(args.base.Finalize(
      args.no_cache ? "--no-cache recomputes everything for each token" : ""));
  if (!args.chat && (!args.chat_options.system.empty() ||
                     !args.chat_options.template_path.empty())) {
    return {Code::kInvalidArgument, "--system and --template need --chat"};
  }
  if (args.n_tokens < 0 && args.ignore_eos &&
      args.base.engine.streaming_window > 0) {
    return {Code::kInvalidArgument,
            "-n -1 would never end: --ignore-eos leaves out the end of the "
            "text and --streaming-llm-window that of the context"};
  }
  if (args.quiet && args.verbose) {
    return {Code::kInvalidArgument, "--quiet and --verbose: leave one out"};
  }
  args.chat_options.now = ClockFromEnvironment();
  return args.form.Read();
}

// Text on stdout as it comes; with --json nothing until the end. A terminal
// gets no control characters from a model.
bool PrintToken(const SampleArgs& args, const Token& token) {
  if (args.json) return !Interrupted();
  static const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  // Standard output that takes no more ends the run, as for any filter.
  const bool taken =
      terminal ? PrintNow(EscapedLines(token.text)) : PrintNow(token.text);
  return taken && !Interrupted();
}

Result<SampleReport> Run(const SampleArgs& args, Engine& engine,
                         const std::string& text) {
  SampleReport report;
  GenerateOptions generate = args.generate();
  HEARTH_ASSIGN(generate.constraint, args.form.Make(engine));
  report.seed = generate.sampling.seed;
  report.greedy = generate.sampling.temperature == 0;
  report.cached = !args.no_cache;
  report.device = engine.device();
  HEARTH_ASSIGN(std::vector<std::int32_t> encoded,
                args.chat ? EncodeChatMessage(engine, args.chat_options, text)
                          : engine.codec().Encode(text, /*special=*/true));
  const PromptIds prompt = engine.PreferStoredIds(std::move(encoded));
  const std::vector<std::int32_t>& ids = prompt.ids;
  report.ids_from_store = prompt.from_store;
  HEARTH_ASSIGN(std::unique_ptr<Session> session, engine.NewSession());
  report.start_ms = SinceStartMs();
  const auto on_token = [&](const Token& token) {
    if (report.ttft_ms == 0) report.ttft_ms = SinceStartMs();
    return PrintToken(args, token);
  };
  if (args.no_cache) {
    report.sync.prompt_tokens = static_cast<int>(ids.size());
    report.sync.reuse_tier = "none";
    report.sync.miss_reason = "--no-cache";
    HEARTH_ASSIGN(report.generate,
                  session->GenerateUncached(ids, generate, on_token));
  } else {
    {
      Progress progress("prefill", Unit::kTokens, args.quiet);
      HEARTH_ASSIGN(report.sync, session->Sync(ids, [&](int done, int total) {
        progress.Update(static_cast<std::uint64_t>(done),
                        static_cast<std::uint64_t>(total));
        return !Interrupted();
      }));
    }
    for (const std::string& warning : report.sync.warnings) Note(warning);
    HEARTH_ASSIGN(report.generate,
                  session->Generate(generate, on_token,
                                    [](int, int) { return !Interrupted(); }));
  }
  report.kv = session->Usage();
  if (!args.json && ::isatty(STDOUT_FILENO) == 1) PrintNow("\n");
  return report;
}

int Sample(SampleArgs& args) {
  if (const auto ready = Finalize(args); !ready.ok())
    return Fail(ready.error());
  const auto text = PromptText(args);
  if (!text.ok()) return Fail(text.error());
  auto engine = args.base.Open(args.quiet);
  if (!engine.ok()) return Fail(engine.error());
  CatchInterrupts();
  const auto report = Run(args, **engine, *text);
  const auto saved =
      (*engine)->DrainSaves(Interrupted() ? kDrainSecondsMax : 0);
  if (!saved.ok()) Note(saved.error().message);
  if (!report.ok()) {
    const int code = Fail(report.error());
    return report.error().code == Code::kCancelled ? kInterrupted : code;
  }
  if (args.json) Print(ToJson(*report) + "\n");
  if (args.verbose) {
    PrintStatus(Footer(*report));
  } else if (!args.quiet) {
    PrintStatus(ShortFooter(*report));
  }
  return Interrupted() ? kInterrupted : kOk;
}

}  // namespace

void AddSample(const Command& program, int& exit_code) {
  auto args = std::make_shared<SampleArgs>();
  Command command = program.Sub("sample", "Continue a prompt with a model");
  args->base.AddModel(command);
  args->prompt_option = command.Text("--prompt,-p", args->prompt, "the text");
  command
      .Name("--prompt-file,--file,-f", args->prompt_file,
            "a file with the text; - is standard input")
      .Excludes(args->prompt_option);
  command
      .Integer("--tokens,-n", args->n_tokens, -1,
               std::numeric_limits<int>::max(),
               "tokens to generate at most; -1: until the text or the context "
               "ends")
      .Default(std::to_string(args->n_tokens));
  command.Flag("--ignore-eos", args->ignore_eos,
               "go on after an end-of-text token");
  command.Flag("--chat", args->chat,
               "the prompt is a user's message: apply the chat template");
  command.Text("--system", args->chat_options.system,
               "with --chat: the system message");
  command.Name("--template", args->chat_options.template_path,
               "with --chat: a .jinja file instead of the model's own");
  command.Flag("--no-cache", args->no_cache,
               "recompute the whole sequence for every token (reference)");
  command.Flag("--json", args->json, "one JSON object on stdout instead");
  command.Flag("--quiet,-q", args->quiet, "no progress and no footer");
  command.Flag("--verbose,-v", args->verbose, "every figure in the footer");
  args->form.Add(command);
  args->base.AddSampling(command);
  args->base.AddKv(command);
  args->base.AddDraft(command);
  command.Run(exit_code, [args] { return Sample(*args); });
}

}  // namespace hearth::cli
