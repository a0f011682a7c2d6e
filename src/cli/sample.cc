// hearth sample: one prompt in, text out.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <string>
#include <utility>

#include "cli/command.h"
#include "cli/engine_args.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/sample_report.h"
#include "cli/units.h"
#include "hearth/chat.h"
#include "hearth/engine.h"

namespace hearth::cli {
namespace {

struct SampleArgs {
  EngineArgs base;
  ConversationOptions chat_options;
  std::string prompt;
  std::string prompt_file;
  int n_tokens = 200;
  bool ignore_eos = false;
  bool has_prompt = false;
  bool chat = false;
  bool no_cache = false;
  bool json = false;
  bool quiet = false;

  GenerateOptions generate() const {
    return {.n_tokens_max = n_tokens,
            .ignore_eos = ignore_eos,
            .sampling = base.sampling};
  }
};

Result<std::string> PromptText(const SampleArgs& args) {
  if (!args.prompt_file.empty()) return ReadInput(args.prompt_file);
  if (args.has_prompt) return args.prompt;
  return {Code::kInvalidArgument,
          "give the prompt with --prompt TEXT or --prompt-file FILE"};
}

Result<void> Finalize(SampleArgs& args) {
  HEARTH_TRY(args.base.Finalize());
  if (args.no_cache && (!args.base.engine.prompt_cache_dir.empty() ||
                        !args.base.engine.prompt_cache_file.empty())) {
    return {Code::kInvalidArgument,
            "--no-cache recomputes everything, so --prompt-cache-dir and "
            "--cache-prompt would do nothing; leave one out"};
  }
  if (args.no_cache && !args.base.engine.draft.empty()) {
    return {Code::kInvalidArgument,
            "--no-cache recomputes everything for each token, so --draft would "
            "do nothing; leave one out"};
  }
  if (!args.chat && (!args.chat_options.system.empty() ||
                     !args.chat_options.template_path.empty())) {
    return {Code::kInvalidArgument, "--system and --template need --chat"};
  }
  if (args.n_tokens < 0) {
    return {Code::kInvalidArgument, "--tokens must be 0 or more"};
  }
  args.chat_options.now = ClockFromEnvironment();
  return {};
}

// Text on stdout as it comes; with --json nothing until the end.
bool Print(const SampleArgs& args, const Token& token) {
  if (args.json) return !Interrupted();
  std::fwrite(token.text.data(), 1, token.text.size(), stdout);
  // A closed pipe ends the run, as for any filter.
  if (std::fflush(stdout) != 0) return false;
  return !Interrupted();
}

Result<SampleReport> Run(const SampleArgs& args, Engine& engine,
                         const std::string& text) {
  SampleReport report;
  const GenerateOptions generate = args.generate();
  report.seed = generate.sampling.seed;
  report.greedy = generate.sampling.temperature == 0;
  report.cached = !args.no_cache;
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
    return Print(args, token);
  };
  if (args.no_cache) {
    report.sync.prompt_tokens = static_cast<int>(ids.size());
    report.sync.reuse_tier = "none";
    report.sync.miss_reason = "--no-cache";
    HEARTH_ASSIGN(report.generate,
                  session->GenerateUncached(ids, generate, on_token));
  } else {
    {
      PrefillProgress progress(args.quiet);
      HEARTH_ASSIGN(report.sync, session->Sync(ids, [&](int done, int total) {
        progress.Update(done, total);
        return !Interrupted();
      }));
    }
    for (const std::string& warning : report.sync.warnings) Note(warning);
    HEARTH_ASSIGN(report.generate,
                  session->Generate(generate, on_token,
                                    [](int, int) { return !Interrupted(); }));
  }
  report.kv = session->Usage();
  if (!args.json && !args.quiet && ::isatty(STDOUT_FILENO) == 1) {
    std::fputc('\n', stdout);
    std::fflush(stdout);
  }
  return report;
}

int Sample(SampleArgs& args) {
  if (const auto ready = Finalize(args); !ready.ok())
    return Fail(ready.error());
  const auto text = PromptText(args);
  if (!text.ok()) return Fail(text.error());
  auto engine = Engine::Open(args.base.engine);
  if (!engine.ok()) return Fail(engine.error());
  CatchInterrupts();
  const auto report = Run(args, **engine, *text);
  const auto saved =
      (*engine)->DrainSaves(Interrupted() ? kDrainSecondsMax : 0);
  if (!saved.ok()) Note("prompt cache not saved: " + saved.error().message);
  if (!report.ok()) {
    const int code = Fail(report.error());
    return report.error().code == Code::kCancelled ? kInterrupted : code;
  }
  if (args.json) {
    const std::string line = ToJson(*report) + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
  }
  if (!args.quiet) {
    std::fputs(Footer(*report).c_str(), stderr);
  }
  return Interrupted() ? kInterrupted : kOk;
}

}  // namespace

void AddSample(CLI::App& app, int& exit_code) {
  auto args = std::make_shared<SampleArgs>();
  CLI::App* command =
      app.add_subcommand("sample", "Continue a prompt with a model");
  args->base.AddModel(*command);
  auto* prompt = command->add_option("--prompt,-p", args->prompt, "the text");
  prompt->each([args](const std::string&) { args->has_prompt = true; });
  command
      ->add_option("--prompt-file,-f", args->prompt_file,
                   "a file with the text; - is standard input")
      ->excludes(prompt);
  command
      ->add_option("--tokens,-n", args->n_tokens, "tokens to generate at most")
      ->capture_default_str();
  command->add_flag("--ignore-eos", args->ignore_eos,
                    "go on after an end-of-text token");
  command->add_flag("--chat", args->chat,
                    "the prompt is a user's message: apply the chat template");
  command->add_option("--system", args->chat_options.system,
                      "with --chat: the system message");
  command->add_option("--template", args->chat_options.template_path,
                      "with --chat: a .jinja file instead of the model's own");
  args->base.AddSampling(*command);
  args->base.AddKv(*command);
  args->base.AddDraft(*command);
  command->add_flag("--no-cache", args->no_cache,
                    "recompute the whole sequence for every token (reference)");
  command->add_flag("--json", args->json, "one JSON object on stdout instead");
  command->add_flag("--quiet,-q", args->quiet, "no progress and no footer");
  command->callback([args, &exit_code] { exit_code = Sample(*args); });
}

}  // namespace hearth::cli
