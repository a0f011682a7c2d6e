// hearth sample: one prompt in, text out.
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <random>
#include <string>

#include "cli/command.h"
#include "cli/input.h"
#include "cli/interrupt.h"
#include "cli/progress.h"
#include "cli/sample_report.h"
#include "cli/units.h"
#include "hearth/engine.h"

namespace hearth::cli {
namespace {

struct SampleArgs {
  EngineOptions engine;
  GenerateOptions generate;
  std::string prompt;
  std::string prompt_file;
  std::string kv_quantize = "fp32";
  std::string kv_growth = "in-place";
  bool has_prompt = false;
  bool has_seed = false;
  bool no_cache = false;
  bool json = false;
  bool quiet = false;
};

Result<std::string> PromptText(const SampleArgs& args) {
  if (!args.prompt_file.empty()) return ReadInput(args.prompt_file);
  if (args.has_prompt) return args.prompt;
  return {Code::kInvalidArgument,
          "give the prompt with --prompt TEXT or --prompt-file FILE"};
}

Result<void> Finalize(SampleArgs& args) {
  const auto storage = KvStorageNamed(args.kv_quantize);
  if (!storage.has_value()) {
    return {Code::kInvalidArgument,
            "--kv-quantize " + args.kv_quantize +
                ": not supported; use fp32, fp16 or bf16"};
  }
  args.engine.kv_storage = *storage;
  if (args.kv_growth == "concat") {
    args.engine.kv_growth = KvGrowth::kConcat;
  } else if (args.kv_growth != "in-place") {
    return {Code::kInvalidArgument, "--kv-growth " + args.kv_growth +
                                        ": use in-place or concat"};
  }
  if (args.no_cache && (!args.engine.prompt_cache_dir.empty() ||
                        !args.engine.prompt_cache_file.empty())) {
    return {Code::kInvalidArgument,
            "--no-cache recomputes everything, so --prompt-cache-dir and "
            "--cache-prompt would do nothing; leave one out"};
  }
  if (args.generate.n_tokens_max < 0) {
    return {Code::kInvalidArgument, "--tokens must be 0 or more"};
  }
  if (!args.has_seed) {
    std::random_device device;
    args.generate.sampling.seed =
        (std::uint64_t{device()} << 32) | std::uint64_t{device()};
  }
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
  report.seed = args.generate.sampling.seed;
  report.greedy = args.generate.sampling.temperature == 0;
  report.cached = !args.no_cache;
  HEARTH_ASSIGN(const std::vector<std::int32_t> ids,
                engine.codec().Encode(text, /*special=*/true));
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
                  session->GenerateUncached(ids, args.generate, on_token));
  } else {
    {
      PrefillProgress progress(args.quiet);
      HEARTH_ASSIGN(report.sync, session->Sync(ids, [&](int done, int total) {
        progress.Update(done, total);
        return !Interrupted();
      }));
    }
    for (const std::string& warning : report.sync.warnings) Note(warning);
    HEARTH_ASSIGN(report.generate, session->Generate(args.generate, on_token));
  }
  report.kv = session->Usage();
  if (!args.json && !args.quiet && ::isatty(STDOUT_FILENO) == 1) {
    std::fputc('\n', stdout);
    std::fflush(stdout);
  }
  return report;
}

int Sample(SampleArgs& args) {
  if (const auto ready = Finalize(args); !ready.ok()) return Fail(ready.error());
  const auto text = PromptText(args);
  if (!text.ok()) return Fail(text.error());
  auto engine = Engine::Open(args.engine);
  if (!engine.ok()) return Fail(engine.error());
  CatchInterrupts();
  const auto report = Run(args, **engine, *text);
  const auto saved = (*engine)->DrainSaves();
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

void AddSampling(CLI::App& command, SamplingOptions& sampling, bool& has_seed) {
  command.add_option("--temperature,--temp", sampling.temperature,
                     "0 is greedy")->capture_default_str();
  command.add_option("--top-k", sampling.top_k, "keep the k likeliest; 0: off")
      ->capture_default_str();
  command.add_option("--top-p", sampling.top_p,
                     "keep the likeliest that add up to p; 1: off")
      ->capture_default_str();
  command.add_option("--min-p", sampling.min_p,
                     "drop what is rarer than p times the likeliest; 0: off")
      ->capture_default_str();
  command.add_option("--seed", sampling.seed,
                     "of the random draws; a new one each run by default")
      ->each([&has_seed](const std::string&) { has_seed = true; });
}

void AddKv(CLI::App& command, SampleArgs& args) {
  command.add_flag("--no-cache", args.no_cache,
                   "recompute the whole sequence for every token (reference)");
  command.add_option("--kv-quantize", args.kv_quantize,
                     "storage of keys and values: fp32, fp16, bf16")
      ->capture_default_str();
  command.add_flag("--kv-preallocate,!--no-kv-preallocate",
                   args.engine.kv_preallocate,
                   "fault the KV memory of the whole context in at the start");
  command.add_option("--kv-growth", args.kv_growth,
                     "in-place, or concat (reference: copies at every step)")
      ->capture_default_str();
  command.add_option("--context", args.engine.context_tokens,
                     "tokens of context; default: what the model was trained on")
      ->check(CLI::PositiveNumber);
  command.add_option("--cache-prompt", args.engine.prompt_cache_file,
                     "keep the prompt's KV in this one file; wins over the "
                     "directory");
  command.add_option("--prompt-cache-dir", args.engine.prompt_cache_dir,
                     "keep and reuse prompts' KV in this directory");
  command.add_option("--cache-namespace", args.engine.cache_namespace,
                     "entries of one name space are invisible to others");
}

}  // namespace

void AddSample(CLI::App& app, int& exit_code) {
  auto args = std::make_shared<SampleArgs>();
  CLI::App* command =
      app.add_subcommand("sample", "Continue a prompt with a model");
  command->add_option("MODEL", args->engine.model_path,
                      "GGUF file, .tinygpt file or Hugging Face directory; "
                      "default: the small model inside the program");
  auto* prompt = command->add_option("--prompt,-p", args->prompt, "the text");
  prompt->each([args](const std::string&) { args->has_prompt = true; });
  command->add_option("--prompt-file,-f", args->prompt_file,
                      "a file with the text; - is standard input")
      ->excludes(prompt);
  command->add_option("--tokens,-n", args->generate.n_tokens_max,
                      "tokens to generate at most")->capture_default_str();
  command->add_flag("--ignore-eos", args->generate.ignore_eos,
                    "go on after an end-of-text token");
  command->add_option("--threads,-t", args->engine.n_threads,
                      "default: the processors this process may use")
      ->check(CLI::PositiveNumber);
  AddSampling(*command, args->generate.sampling, args->has_seed);
  AddKv(*command, *args);
  command->add_flag("--json", args->json, "one JSON object on stdout instead");
  command->add_flag("--quiet,-q", args->quiet, "no progress and no footer");
  command->callback([args, &exit_code] { exit_code = Sample(*args); });
}

}  // namespace hearth::cli
