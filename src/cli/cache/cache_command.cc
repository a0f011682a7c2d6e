// hearth cache: looks into a prompt cache directory and keeps it in order.
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cli/cache/cache_json.h"
#include "cli/cache/cache_text.h"
#include "cli/cache/tree_text.h"
#include "cli/options/command.h"
#include "cli/options/engine_args.h"
#include "cli/terminal/input.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/text.h"
#include "hearth/cache.h"

namespace hearth::cli {
namespace {

struct CacheArgs {
  EngineArgs base;
  std::string dir, name, file, model_name;
  std::string prompt, prompt_file;
  std::uint64_t budget_bytes = 0;
  bool yes = false;
  Option prompt_option;
  bool json = false;

  CacheDir where() const {
    return {dir, base.engine.cache_key_file, base.engine.cache_remote_key_file};
  }
};

// What a verb has done, in both forms.
struct Outcome {
  nlohmann::ordered_json json;
  std::string text;
  bool whole = true;  // false: something is left undone
};

template <typename Report>
Result<Outcome> Shown(const Result<Report>& report) {
  if (!report.ok()) return report.error();
  return Outcome{ToJson(*report), ToText(*report)};
}

Result<Outcome> Deleted(const Result<GcReport>& report) {
  HEARTH_ASSIGN(Outcome outcome, Shown(report));
  outcome.whole = report->left.empty();
  return outcome;
}

// {"pinned": "stem"} and its like.
Result<Outcome> Done(const char* what, const Result<std::string>& name) {
  if (!name.ok()) return name.error();
  return Outcome{{{what, *name}}, what + (" " + Escaped(*name)) + "\n"};
}

Result<CacheMiss> Why(CacheArgs& args) {
  if (!args.prompt_option.given() && args.prompt_file.empty()) {
    return Error{Code::kInvalidArgument,
                 "give the prompt with --prompt TEXT or --prompt-file FILE"};
  }
  // Opening a store makes it; this command must not.
  HEARTH_TRY(CacheStats(args.where()));
  args.base.engine.prompt_cache_dir = args.dir;
  HEARTH_TRY(args.base.Finalize());
  std::string prompt = args.prompt;
  if (!args.prompt_file.empty()) {
    HEARTH_ASSIGN(prompt, ReadPrompt(args.prompt_file));
  }
  HEARTH_ASSIGN(auto engine, Engine::Open(args.base.engine));
  return CacheWhy(*engine, prompt);
}

Result<GcReport> Wipe(const CacheArgs& args) {
  if (!args.yes) {
    return Error{Code::kInvalidArgument,
                 "this deletes stored prompts, pinned ones too; say --yes"};
  }
  return CacheWipe(args.where(), args.model_name);
}

Result<VerifyReport> Verify(const CacheArgs& args) {
  Progress progress("verify", Unit::kBytes, /*quiet=*/false);
  return CacheVerify(args.where(),
                     [&](std::uint64_t done, std::uint64_t total) {
                       progress.Update(done, total);
                     });
}

// A bundle takes the place of a bundle and of nothing else; the store sees to
// that.
Result<std::string> Export(const CacheArgs& args) {
  if (args.file == "-") {
    return Error{Code::kInvalidArgument,
                 "a prompt is exported to a file, not to standard output; name "
                 "one"};
  }
  HEARTH_TRY(CacheExport(args.where(), args.name, args.file));
  return args.file;
}

using Action = std::function<Result<Outcome>(CacheArgs&)>;

// A verb with the directory and --json; the caller adds its own arguments.
Command AddVerb(const Command& cache, const std::shared_ptr<CacheArgs>& args,
                int& exit_code, const char* verb, const char* what,
                Action action) {
  Command command = cache.Sub(verb, what);
  command.Name("DIR", args->dir, "the prompt cache directory").Required();
  command.Flag("--json", args->json, "one JSON object on stdout");
  command.Name("--cache-key-file", args->base.engine.cache_key_file,
               "the key of encrypted entries");
  command.Run(exit_code, [args, action = std::move(action)] {
    const auto outcome = action(*args);
    if (!outcome.ok()) {
      return Fail(outcome.error());
    }
    using Json = nlohmann::ordered_json;
    Print(args->json ? outcome->json.dump(-1, ' ', false,
                                          Json::error_handler_t::replace) +
                           "\n"
                     : outcome->text);
    return outcome->whole ? kOk : kFailed;
  });
  return command;
}

void AddPromptVerbs(const Command& cache,
                    const std::shared_ptr<CacheArgs>& args, int& exit_code) {
  const auto add = [&](const char* verb, const char* what, Action action) {
    Command command =
        AddVerb(cache, args, exit_code, verb, what, std::move(action));
    command.Name("NAME", args->name, "a prompt, as `ls` names it").Required();
    return command;
  };
  add("show", "Show one prompt's blocks",
      [](CacheArgs& a) { return Shown(CacheShow(a.where(), a.name)); });
  add("pin", "Never evict a prompt",
      [](CacheArgs& a) { return Done("pinned", CachePin(a.where(), a.name)); });
  add("unpin", "Let a prompt be evicted again", [](CacheArgs& a) {
    return Done("unpinned", CacheUnpin(a.where(), a.name));
  });
  add("evict", "Delete a prompt, and its blocks that no other has",
      [](CacheArgs& a) { return Deleted(CacheEvict(a.where(), a.name)); });
  Command out = add("export", "Write a prompt as one file, for another machine",
                    [](CacheArgs& a) { return Done("exported", Export(a)); });
  out.Name("FILE", args->file, "the file to write").Required();
}

void AddStoreVerbs(const Command& cache, const std::shared_ptr<CacheArgs>& args,
                   int& exit_code) {
  const auto add = [&](const char* verb, const char* what, Action action) {
    return AddVerb(cache, args, exit_code, verb, what, std::move(action));
  };
  add("ls", "List stored prompts",
      [](CacheArgs& a) { return Shown(CacheList(a.where())); });
  add("tree", "Draw what stored prompts have in common",
      [](CacheArgs& a) { return Shown(CacheTree(a.where())); });
  add("stats", "Where the bytes are",
      [](CacheArgs& a) { return Shown(CacheStats(a.where())); });
  add("verify", "Read every file; set damaged ones aside",
      [](CacheArgs& a) { return Shown(Verify(a)); })
      .Name("--cache-remote-key-file", args->base.engine.cache_remote_key_file,
            "the shared cache's key: its blocks must be signed with it");
  add("gc", "Delete leftovers, then enforce a budget", [](CacheArgs& a) {
    return Deleted(CacheGc(a.where(), a.budget_bytes));
  }).Size("--budget", args->budget_bytes, "bytes (500M, 20G); 0: no limit");
  Command wipe = add("wipe", "Delete all stored prompts",
                     [](CacheArgs& a) { return Deleted(Wipe(a)); });
  wipe.Name("--model", args->model_name, "only this model's");
  wipe.Flag("--yes", args->yes, "really");
  Command import =
      add("import", "Take in an exported prompt", [](CacheArgs& a) {
        return Done("imported", CacheImport(a.where(), a.file, a.budget_bytes));
      });
  import.Name("FILE", args->file, "what `export` wrote").Required();
  import.Size("--budget", args->budget_bytes, "bytes (500M, 20G); 0: none");
}

}  // namespace

void AddCache(const Command& program, int& exit_code) {
  auto args = std::make_shared<CacheArgs>();
  const Command cache =
      program.Sub("cache", "Look into a prompt cache directory");
  cache.NeedsSub(1);
  AddStoreVerbs(cache, args, exit_code);
  AddPromptVerbs(cache, args, exit_code);
  Command why = AddVerb(cache, args, exit_code, "why",
                        "How much of a prompt would hit, and why not more",
                        [](CacheArgs& a) { return Shown(Why(a)); });
  const Option model = why.Name("MODEL", args->base.engine.model_path,
                                "default: the model inside the program");
  why.Name("--model,-m", args->base.engine.model_path, "the same")
      .Excludes(model);
  args->prompt_option = why.Text("--prompt,-p", args->prompt, "the text");
  why.Name("--prompt-file,--file,-f", args->prompt_file,
           "a file with the text; - is standard input")
      .Excludes(args->prompt_option);
  AddAdapterOption(why, args->base.engine);
  args->base.AddKvFormat(why);
  why.Name("--cache-namespace", args->base.engine.cache_namespace,
           "the name space of its entries");
}

}  // namespace hearth::cli
