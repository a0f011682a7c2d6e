// hearth cache: looks into a prompt cache directory and keeps it in order.
#include "hearth/cache.h"

#include <algorithm>
#include <ctime>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "cli/command.h"
#include "cli/engine_args.h"
#include "cli/input.h"
#include "cli/table.h"
#include "cli/units.h"

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

  CacheDir where() const { return {dir, base.engine.cache_key_file}; }
};

std::string Number(const Json& value) {
  return std::to_string(value.get<std::uint64_t>());
}
std::string Bytes(const Json& value) {
  return HumanBytes(value.get<std::uint64_t>());
}

std::string Ago(double unix_s) {
  const double s =
      std::max(0.0, static_cast<double>(std::time(nullptr)) - unix_s);
  if (unix_s <= 0) return "-";
  if (s < 60) return Fixed(s, 0) + " s ago";
  if (s < 3600) return Fixed(s / 60, 0) + " min ago";
  if (s < 48 * 3600) return Fixed(s / 3600, 0) + " h ago";
  return Fixed(s / 86400, 0) + " days ago";
}

std::string ListText(const Json& json) {
  Table table = {
      {"PROMPT", "TOKENS", "USABLE", "SIZE", "SHARED", "LAST USE", ""}};
  for (const Json& p : json["prompts"]) {
    table.push_back({p["name"].get<std::string>(), Number(p["tokens"]),
                     Number(p["tokens_usable"]), Bytes(p["bytes"]),
                     Bytes(p["bytes_shared"]),
                     Ago(p["last_use_unix_s"].get<double>()),
                     p["pinned"].get<bool>() ? "pinned" : ""});
  }
  std::string text =
      table.size() > 1 ? FormatTable(table) : "no stored prompts\n";
  if (json["locked"].get<std::uint64_t>() > 0) {
    text += Number(json["locked"]) +
            " prompts of another key, or of none, are not shown; "
            "--cache-key-file names the key\n";
  }
  return text;
}

std::string ShowText(const Json& json) {
  std::string text = Escaped(json["name"].get<std::string>()) + ": " +
                     Number(json["tokens"]) + " tokens, " +
                     Number(json["tokens_usable"]) + " usable, " +
                     Bytes(json["bytes"]) + "\nmodel id  " +
                     json["model_id"].get<std::string>() + "\n\n";
  Table table = {{"BLOCK", "TOKENS", "SIZE", "SHARED BY", ""}};
  for (const Json& b : json["chain"]) {
    const auto first = b["first_token"].get<std::uint64_t>();
    const auto end = first + b["tokens"].get<std::uint64_t>();
    table.push_back({b["id"].get<std::string>().substr(0, 16),
                     std::to_string(first) + "-" + std::to_string(end - 1),
                     Bytes(b["bytes"]), Number(b["shared_by"]),
                     !b["present"].get<bool>() ? "MISSING"
                     : b["piece"].get<bool>()  ? "piece"
                                               : ""});
  }
  return text + FormatTable(table);
}

std::string StatsText(const Json& json) {
  Table table = {{"KIND", "FILES", "SIZE"}};
  for (const char* kind : {"blocks", "manifests", "sidecars", "memos",
                           "quarantined", "temporaries", "other"}) {
    table.push_back(
        {kind, Number(json[kind]["files"]), Bytes(json[kind]["bytes"])});
  }
  table.push_back({"all", "", Bytes(json["total_bytes"])});
  std::string text = FormatTable(table);
  Table models = {{"MODEL", "PROMPTS", "TOKENS", "SIZE"}};
  for (const Json& m : json["models"]) {
    models.push_back({m["model"].get<std::string>(), Number(m["prompts"]),
                      Number(m["tokens"]), Bytes(m["bytes"])});
  }
  if (models.size() > 1) text += "\n" + FormatTable(models);
  return text;
}

std::string VerifyText(const Json& json) {
  std::string text = Number(json["files"]) + " files, " + Bytes(json["bytes"]) +
                     " read in " + Fixed(json["seconds"].get<double>(), 2) +
                     " s, " + std::to_string(json["defects"].size()) +
                     " damaged\n";
  for (const Json& d : json["defects"]) {
    text += Escaped(d["path"].get<std::string>() + ": " +
                    d["reason"].get<std::string>()) +
            (d["set_aside"].get<bool>() ? " (set aside)\n" : "\n");
  }
  if (json["locked"].get<std::uint64_t>() > 0) {
    text += Number(json["locked"]) +
            " files of another key, or of none, were not read; "
            "--cache-key-file names the key\n";
  }
  for (const Json& stem : json["incomplete"]) {
    text += Escaped(stem.get<std::string>()) + ": blocks are missing\n";
  }
  return text;
}

std::string WhyText(const Json& json) {
  std::string text = Number(json["tokens_stored"]) + " of " +
                     Number(json["tokens"]) + " tokens would be reused\n";
  const std::string reason = json["miss_reason"].get<std::string>();
  if (!reason.empty()) text += "reason    " + Escaped(reason) + "\n";
  if (json.contains("load_ms")) {
    text +=
        "worth it  loading them " + HumanMs(json["load_ms"].get<double>()) +
        ", computing them " + HumanMs(json["compute_ms"].get<double>()) +
        (json["load_pays"].get<bool>() ? "\n"
                                       : ": computed, unless --cache-always\n");
  }
  if (json.contains("tokens_by_text")) {
    text += "by text   " + Number(json["tokens_by_text"]) +
            " tokens are stored under other ids; --cache-by-text uses them\n";
  }
  const std::string nearest = json["nearest"].get<std::string>();
  if (nearest.empty()) return text + "nothing stored comes near this prompt\n";
  text += "nearest   " + Escaped(nearest) + ", " +
          Number(json["tokens_common"]) + " tokens in common\n";
  for (const Json& key : json["key_differences"]) {
    text += "differs   in its " + key.get<std::string>() + "\n";
  }
  if (json.contains("asked")) {
    text += "parts at  token " + Number(json["tokens_common"]) + ", byte " +
            Number(json["byte"]) + "\nasked     " +
            Escaped(json["asked"].dump()) + "\nstored    " +
            Escaped(json["stored"].dump()) + "\n";
  }
  return text;
}

std::string NotDeleted(const Json& json) {
  std::string text;
  for (const Json& line : json["left"]) {
    text += "not deleted: " + Escaped(line.get<std::string>()) + "\n";
  }
  return text;
}

std::string DeletedText(const Json& json) {
  return Number(json["files_deleted"]) + " files deleted, " +
         Bytes(json["bytes_deleted"]) + "; " + Bytes(json["bytes_left"]) +
         " left\n" + NotDeleted(json);
}

// {"pinned": "stem"} and its like.
std::string DoneText(const Json& json) {
  return json.begin().key() + " " + Escaped(json.begin()->get<std::string>()) +
         "\n";
}

Result<std::string> Why(CacheArgs& args) {
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

Result<std::string> Wipe(const CacheArgs& args) {
  if (!args.yes) {
    return Error{Code::kInvalidArgument,
                 "this deletes stored prompts, pinned ones too; say --yes"};
  }
  return CacheWipe(args.where(), args.model_name);
}

// A bundle takes the place of a bundle and of nothing else; the store sees to
// that.
Result<std::string> Export(const CacheArgs& args) {
  if (args.file == "-") {
    return Error{Code::kInvalidArgument,
                 "a prompt is exported to a file, not to standard output; name "
                 "one"};
  }
  return CacheExport(args.where(), args.name, args.file);
}

using Action = std::function<Result<std::string>(CacheArgs&)>;
using ToText = std::string (*)(const Json&);

// A verb with the directory and --json; the caller adds its own arguments.
Command AddVerb(const Command& cache, const std::shared_ptr<CacheArgs>& args,
                int& exit_code, const char* verb, const char* what,
                Action action, ToText text) {
  Command command = cache.Sub(verb, what);
  command.Name("DIR", args->dir, "the prompt cache directory").Required();
  command.Flag("--json", args->json, "one JSON object on stdout");
  command.Name("--cache-key-file", args->base.engine.cache_key_file,
               "the key of encrypted entries");
  command.Run(exit_code, [args, action = std::move(action), text] {
    const auto json = action(*args);
    if (!json.ok()) {
      return Fail(json.error());
    }
    const auto parsed = ParseJson(*json, "result");
    Print(args->json || !parsed.ok() ? *json + "\n" : text(*parsed));
    return parsed.ok() && parsed->contains("left") && !(*parsed)["left"].empty()
               ? kFailed
               : kOk;
  });
  return command;
}

void AddPromptVerbs(const Command& cache,
                    const std::shared_ptr<CacheArgs>& args, int& exit_code) {
  const auto add = [&](const char* verb, const char* what, Action action,
                       ToText text) {
    Command command =
        AddVerb(cache, args, exit_code, verb, what, std::move(action), text);
    command.Name("NAME", args->name, "a prompt, as `ls` names it").Required();
    return command;
  };
  add(
      "show", "Show one prompt's blocks",
      [](CacheArgs& a) { return CacheShow(a.where(), a.name); }, ShowText);
  add(
      "pin", "Never evict a prompt",
      [](CacheArgs& a) { return CachePin(a.where(), a.name); }, DoneText);
  add(
      "unpin", "Let a prompt be evicted again",
      [](CacheArgs& a) { return CacheUnpin(a.where(), a.name); }, DoneText);
  Command out = add(
      "export", "Write a prompt as one file, for another machine",
      [](CacheArgs& a) { return Export(a); }, DoneText);
  out.Name("FILE", args->file, "the file to write").Required();
}

void AddStoreVerbs(const Command& cache, const std::shared_ptr<CacheArgs>& args,
                   int& exit_code) {
  const auto add = [&](const char* verb, const char* what, Action action,
                       ToText text) {
    return AddVerb(cache, args, exit_code, verb, what, std::move(action), text);
  };
  add(
      "ls", "List stored prompts",
      [](CacheArgs& a) { return CacheList(a.where()); }, ListText);
  add(
      "stats", "Where the bytes are",
      [](CacheArgs& a) { return CacheStats(a.where()); }, StatsText);
  add(
      "verify", "Read every file; set damaged ones aside",
      [](CacheArgs& a) { return CacheVerify(a.where()); }, VerifyText);
  add(
      "gc", "Delete leftovers, then enforce a budget",
      [](CacheArgs& a) { return CacheGc(a.where(), a.budget_bytes); },
      DeletedText)
      .Size("--budget", args->budget_bytes, "bytes (500M, 20G); 0: no limit");
  Command wipe = add(
      "wipe", "Delete all stored prompts", [](CacheArgs& a) { return Wipe(a); },
      DeletedText);
  wipe.Name("--model", args->model_name, "only this model's");
  wipe.Flag("--yes", args->yes, "really");
  Command import = add(
      "import", "Take in an exported prompt",
      [](CacheArgs& a) {
        return CacheImport(a.where(), a.file, a.budget_bytes);
      },
      DoneText);
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
  Command why = AddVerb(
      cache, args, exit_code, "why",
      "How much of a prompt would hit, and why not more",
      [](CacheArgs& a) { return Why(a); }, WhyText);
  const Option model = why.Name("MODEL", args->base.engine.model_path,
                                "default: the model inside the program");
  why.Name("--model,-m", args->base.engine.model_path, "the same")
      .Excludes(model);
  args->prompt_option = why.Text("--prompt,-p", args->prompt, "the text");
  why.Name("--prompt-file,--file,-f", args->prompt_file,
           "a file with the text; - is standard input")
      .Excludes(args->prompt_option);
  args->base.AddKvFormat(why);
  why.Name("--cache-namespace", args->base.engine.cache_namespace,
           "the name space of its entries");
}

}  // namespace hearth::cli
