// hearth serve: answers programs over HTTP until it is told to end.
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "cli/commands/available_memory.h"
#include "cli/options/command.h"
#include "cli/options/engine_args.h"
#include "cli/serve/serve_clients.h"
#include "cli/serve/serve_signals.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/units.h"
#include "serve/app/server.h"

namespace hearth::cli {
namespace {

struct ServeArgs {
  EngineArgs base;
  serve::ServerOptions server;
  std::string host;  // empty: this machine alone
  bool quiet = false;
};

// What the options mean together, before anything is opened.
Result<void> Finalize(ServeArgs& args) {
  HEARTH_TRY(args.base.Finalize());
  if (!args.host.empty()) args.server.http.addresses = {args.host};
  if (const char* key = std::getenv("HEARTH_API_KEY"); key != nullptr) {
    args.server.api_key = key;
  }
  for (const std::string& origin : args.server.allow_origins) {
    if (!origin.starts_with("http://") && !origin.starts_with("https://")) {
      return {Code::kInvalidArgument,
              "--allow-origin " + origin +
                  ": give it as a browser does, as in https://example.org"};
    }
  }
  return {};
}

// Weights are mapped: what the system calls available has them in it.
std::uint64_t WeightBytes(const EngineOptions& options) {
  std::uint64_t bytes = 0;
  for (const std::string& path : {options.model_path, options.draft}) {
    // Whoever cannot be read is refused, with the reason, when it is opened.
    const auto info = InspectModel(path);
    if (info.ok()) bytes += info->weight_bytes;
  }
  return bytes;
}

// Half of what the machine has left beside the weights, so that the KV of many
// conversations cannot drive these out. What it has not, KV gets a little of:
// 0 would be no limit.
void ChooseRamBudget(ServeArgs& args) {
  constexpr std::uint64_t kLeast = std::uint64_t{64} << 20;
  if (args.base.ram_budget_given()) return;
  const std::uint64_t available = AvailableMemory();
  if (available == 0) return;
  const std::uint64_t weights = WeightBytes(args.base.engine);
  const std::uint64_t left = available > weights ? available - weights : 0;
  args.base.engine.kv_ram_budget_bytes = std::max(left / 2, kLeast);
}

void TellStart(const ServeArgs& args, const serve::Server& server,
               const Engine& engine) {
  const EngineOptions& options = engine.options();
  std::string line = "serving " + Escaped(server.model_name()) + ", context " +
                     std::to_string(engine.context_tokens());
  if (options.kv_ram_budget_bytes > 0) {
    line += ", KV in memory up to " + HumanBytes(options.kv_ram_budget_bytes);
  }
  if (options.prompt_cache_dir.empty()) {
    line += ", nothing kept on disk";
  } else {
    line += ", kept in " + Escaped(options.prompt_cache_dir);
    if (options.cache_disk_budget_bytes > 0) {
      line += " up to " + HumanBytes(options.cache_disk_budget_bytes);
    }
  }
  Note(line);
  for (const std::string& url : server.base_urls()) {
    Note("listening on " + url);
  }
  if (!args.quiet && ::isatty(STDERR_FILENO) == 1) {
    PrintStatus(ClientLines(server.base_urls().front(), server.model_name(),
                            server.can_chat()));
  }
}

int Serve(ServeArgs& args) {
  if (const auto ready = Finalize(args); !ready.ok())
    return Fail(ready.error());
  ChooseRamBudget(args);
  args.server.has_seed = args.base.seed_given();
  IgnoreBrokenPipes();
  auto server = serve::Server::Listen(
      args.server, [](const std::string& text) { Note(text); });
  if (!server.ok()) {
    Error error = server.error();
    if (!args.host.empty() && args.server.api_key_file.empty()) {
      error.message += " (--host, --api-key-file)";
    }
    return Fail(error);
  }
  auto opened = args.base.Open(args.quiet);
  if (!opened.ok()) return Fail(opened.error());
  Engine& engine = **opened;
  // From here on an end is an orderly one.
  ServeSignals signals;
  if (const auto ready =
          (*server)->Serve(*std::move(opened), args.base.sampling);
      !ready.ok()) {
    return Fail(ready.error());
  }
  TellStart(args, **server, engine);
  const bool has_keys = !args.server.api_key_file.empty();
  while (signals.Next(has_keys) == ServeSignals::Wish::kReload) {
    (*server)->ReloadKeys();
  }
  if (!args.quiet) Note("ending: saving what is open; once more ends at once");
  const auto saved = (*server)->End(kDrainSecondsMax);
  if (!saved.ok()) Note(saved.error().message);
  return kOk;
}

void AddAddressOptions(Command& command, ServeArgs& args) {
  command.Group("Who may ask");
  command.Integer("--port", args.server.http.port, 0, 65535,
                  "of 127.0.0.1 and ::1; 0: any free one");
  command.Name("--host", args.host,
               "another address to listen on, as 0.0.0.0; beyond this machine "
               "only with keys");
  command.Name("--api-key-file", args.server.api_key_file,
               "keys that programs must have, lines \"name key\", mode 600; "
               "read again when it changes. One more: HEARTH_API_KEY");
  command.Flag("--share-cache", args.server.share_cache,
               "programs with different keys may reuse each other's prompts");
  command.Take(
      "--allow-host",
      [&args](const std::string& name) -> Result<void> {
        args.server.allow_hosts.push_back(name);
        return {};
      },
      "a name that this server also goes by");
  command.Take(
      "--allow-origin",
      [&args](const std::string& origin) -> Result<void> {
        args.server.allow_origins.push_back(origin);
        return {};
      },
      "a web site whose pages may ask, as https://example.org");
}

void AddServingOptions(Command& command, ServeArgs& args) {
  command.Group("Serving");
  serve::SchedulerOptions& scheduling = args.server.scheduling;
  command.Integer("--parallel", scheduling.running_max, 1, 64,
                  "answers that are computed at a time; others wait in line");
  command.Integer("--waiting", scheduling.waiting_max, 0, 4096,
                  "requests that may wait in line");
  command.Number("--decode-share", scheduling.decode_share, 0, 0.95,
                 "of its speed that a running answer keeps while prompts are "
                 "read");
  command.Number("--stall", scheduling.stall_ms, 1, 60'000,
                 "milliseconds that a running answer may stand still for them");
  command.Name("--alias", args.server.model_name,
               "the model's name for programs; default: its file's");
  command.Flag("--strict-model", args.server.strict_model,
               "refuse requests for a model of another name");
  command.Name("--template", args.server.template_path,
               "a .jinja file instead of the model's own chat template");
  command.Name("--tool-format", args.server.tool_format,
               "how the model writes tool calls, by name; default: found from "
               "its template");
  command.Name("--log-file", args.server.log_file,
               "one line of JSON a request goes there, without any text; "
               "default: standard error");
  command.FlagOff("--no-journal", args.server.journal,
                  "forget which ids answers were sampled with: the next turn "
                  "computes the last answer again");
  command.FlagOff("--no-log", args.server.log, "no such lines");
  command.Flag("--quiet,-q", args.quiet, "no word about the start");
}

}  // namespace

void AddServe(const Command& program, int& exit_code) {
  auto args = std::make_shared<ServeArgs>();
  Command command =
      program.Sub("serve",
                  "Answer programs over HTTP, in the words of OpenAI, "
                  "Anthropic, Ollama and llama-server");
  args->base.AddModel(command);
  AddAddressOptions(command, *args);
  AddServingOptions(command, *args);
  args->base.AddSampling(command);
  args->base.AddKv(command);
  args->base.AddDraft(command);
  // One screen: the rest is as elsewhere.
  command.ShowOnly(
      {"MODEL",
       "--threads",
       "--port",
       "--host",
       "--api-key-file",
       "--share-cache",
       "--allow-host",
       "--allow-origin",
       "--parallel",
       "--alias",
       "--strict-model",
       "--log-file",
       "--no-log",
       "--context",
       "--kv-quantize",
       "--kv-ram-budget",
       "--no-prompt-cache",
       "--prompt-cache-dir",
       "--cache-disk-budget",
       "--draft",
       "--help"},
      "Also what `hearth sample --help` has of sampling, KV, prompt cache and "
      "guesses, and --waiting, --decode-share, --stall, --template, --quiet: "
      "docs/server.md.");
  command.Run(exit_code, [args] { return Serve(*args); });
}

}  // namespace hearth::cli
