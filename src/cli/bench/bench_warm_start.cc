// hearth bench warm-start: how long a new process takes to its first token.
//
//   cold   an empty prompt cache
//   warm   no prompt cache; model and program are in the page cache
//   hot    the prompt is in the prompt cache
//
// Every launch is a process of its own, timed from outside: from just before
// it is started to the line it prints at its first token. Prompts are text, so
// the tokenizer is part of it.
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "cli/bench/bench.h"
#include "cli/terminal/input.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/units.h"
#include "hearth/engine.h"

namespace hearth::cli {
namespace {

namespace fs = std::filesystem;

// --- One launch --------------------------------------------------------------
struct LaunchArgs {
  BenchArgs base;
  std::string prompt_file;
  int n_decode = 8;
};

Result<OrderedJson> Launch(LaunchArgs& args) {
  HEARTH_TRY(args.base.Finalize());
  HEARTH_ASSIGN(const std::string text, ReadInput(args.prompt_file));
  HEARTH_ASSIGN(const std::unique_ptr<Engine> engine,
                Engine::Open(args.base.engine));
  HEARTH_ASSIGN(const auto ids, engine->codec().Encode(text, true));
  HEARTH_ASSIGN(const std::unique_ptr<Session> session, engine->NewSession());
  OrderedJson json;
  json["ready_ms"] = SinceStartMs();
  HEARTH_ASSIGN(const SyncReport sync, session->Sync(ids, nullptr));
  GenerateOptions options{.n_tokens_max = args.n_decode + 1,
                          .ignore_eos = true};
  options.sampling.temperature = 0;
  double first_ms = 0;
  HEARTH_ASSIGN(const GenerateReport generated,
                session->Generate(options, [&](const Token&) {
                  if (first_ms == 0) {
                    first_ms = SinceStartMs();
                    PrintNow("first token\n");
                  }
                  return true;
                }));
  HEARTH_TRY(engine->DrainSaves());
  for (const std::string& warning : sync.warnings) Note(warning);
  json["prompt_tokens"] = sync.prompt_tokens;
  json["reused_tokens"] = sync.reused_tokens;
  json["lookup_ms"] = sync.lookup_ms;
  json["prefill_ms"] = sync.prefill_ms;
  json["first_token_ms"] = first_ms;
  json["step_ms"] = generated.decode_ms / std::max(1, args.n_decode);
  json["token_ids"] = generated.token_ids;
  return json;
}

void AddLaunch(const Command& bench, int& exit_code) {
  auto args = std::make_shared<LaunchArgs>();
  Command command = bench.Sub(
      "launch", "One launch of warm-start: a prompt and a few tokens, timed");
  args->base.Add(command);
  command.Name("--prompt-file", args->prompt_file, "the text").Required();
  command
      .Integer("--decode", args->n_decode, 0, 1 << 20, "tokens after the first")
      .Default(std::to_string(args->n_decode));
  command.Name("--prompt-cache-dir", args->base.engine.prompt_cache_dir,
               "with the prompt cache in this directory");
  // What a load takes is the question, not whether it pays.
  args->base.engine.cache_always = true;
  command.Run(exit_code, [args] {
    const auto json = Launch(*args);
    if (!json.ok()) return Fail(json.error());
    PrintJson(*json);
    return kOk;
  });
}

// --- All launches -----------------------------------------------------------
struct WarmStartArgs {
  BenchArgs base;
  std::vector<int> lengths = {512, 4096};
  int repetitions = 5;
  int n_decode = 8;
  bool drop = false;
  std::string dir;
};

struct Arm {
  explicit Arm(std::string arm_name) : name(std::move(arm_name)) {}

  std::string name;
  std::vector<double> first_token_ms;  // from outside
  std::vector<double> ready_ms, lookup_ms, step_ms;
  int prompt_tokens = 0, reused_tokens = 0;
  Json token_ids;
};

// A text of about `n` tokens: words that no tokenizer has as a whole story.
Result<std::string> TextOfTokens(const TextCodec& codec, int n) {
  static constexpr const char* kWords[] = {
      "the",    "river", "and",      "a",    "stone", "bridge", "were",
      "older",  "than",  "any",      "map",  "of",    "valley", "that",
      "people", "could", "remember", "when", "rain",  "came",   "down",
      "over",   "quiet", "fields",   "in",   "spring"};
  std::string text;
  std::uint64_t state = 7;
  int n_words = n;
  for (int round = 0; round < 8; ++round) {
    text.clear();
    state = 7;
    for (int i = 0; i < n_words; ++i) {
      state = state * 6364136223846793005u + 1442695040888963407u;
      text += (i > 0 ? " " : "");
      text += kWords[(state >> 33) % std::size(kWords)];
    }
    HEARTH_ASSIGN(const auto ids, codec.Encode(text, true));
    const auto got = static_cast<double>(ids.size());
    const int next = static_cast<int>(n_words * (n / got));
    if (next == n_words) break;
    n_words = std::max(1, next);
  }
  return text;
}

class WarmStart {
 public:
  WarmStart(const WarmStartArgs& args, std::string dir)
      : args_(args), dir_(std::move(dir)) {}

  Result<OrderedJson> Run() {
    const std::string& model = args_.base.engine.model_path;
    HEARTH_ASSIGN(const auto codec, OpenTextCodec(model));
    OrderedJson json;
    json["model"] = model;
    json["kv"] = args_.base.kv;
    json["disk_cache_dropped"] = args_.drop;
    json["lengths"] = OrderedJson::array();
    for (const int n : args_.lengths) {
      HEARTH_ASSIGN(const std::string text, TextOfTokens(*codec, n));
      if (!(std::ofstream(prompt_file()) << text).flush()) {
        return {Code::kIo, prompt_file() + ": cannot be written"};
      }
      HEARTH_ASSIGN(OrderedJson length, RunLength());
      json["lengths"].push_back(std::move(length));
    }
    return json;
  }

 private:
  std::string prompt_file() const { return dir_ + "/prompt.txt"; }
  std::string store() const { return dir_ + "/store"; }

  Result<OrderedJson> RunLength() {
    Arm cold("cold"), warm("warm"), hot("hot");
    Progress progress("warm-start", Unit::kRuns, args_.base.quiet);
    for (int r = 0; r < args_.repetitions; ++r) {
      progress.Update(static_cast<std::uint64_t>(r),
                      static_cast<std::uint64_t>(args_.repetitions));
      std::error_code ignored;
      fs::remove_all(store(), ignored);
      HEARTH_TRY(LaunchOnce(true, cold));
      HEARTH_TRY(LaunchOnce(false, warm));
      HEARTH_TRY(LaunchOnce(true, hot));
      if (cold.token_ids != hot.token_ids || cold.token_ids != warm.token_ids) {
        return {Code::kCorrupt, "the arms gave different tokens"};
      }
    }
    if (hot.reused_tokens != hot.prompt_tokens - 1) {
      return {Code::kIo, "the hot launch reused " +
                             std::to_string(hot.reused_tokens) + " of " +
                             std::to_string(hot.prompt_tokens) + " tokens"};
    }
    OrderedJson json;
    json["prompt_tokens"] = hot.prompt_tokens;
    for (const Arm* arm : {&cold, &warm, &hot}) {
      json[arm->name] = {{"first_token_ms", Spread(arm->first_token_ms)},
                         {"ready_ms", Spread(arm->ready_ms)},
                         {"lookup_ms", Spread(arm->lookup_ms)},
                         {"step_ms", Spread(arm->step_ms)},
                         {"reused_tokens", arm->reused_tokens}};
    }
    return json;
  }

  Result<void> LaunchOnce(bool cached, Arm& arm) {
    if (Interrupted()) return {Code::kCancelled, "interrupted"};
    if (args_.drop) {
      if (!args_.base.engine.model_path.empty()) {
        HEARTH_TRY(DropFromPageCache(args_.base.engine.model_path));
      }
      if (cached && fs::exists(store())) HEARTH_TRY(DropFromPageCache(store()));
    }
    std::vector<std::string> words = {
        "bench",       "launch",   "--prompt-file",
        prompt_file(), "--decode", std::to_string(args_.n_decode)};
    for (std::string& word : args_.base.Words()) words.push_back(word);
    if (cached) words.insert(words.end(), {"--prompt-cache-dir", store()});
    HEARTH_ASSIGN(const ChildRun run, RunSelf(words));
    HEARTH_ASSIGN(const Json json, ParseJson(run.last_line, "a launch"));
    arm.first_token_ms.push_back(run.first_line_ms);
    const double before_main =
        run.first_line_ms - json["first_token_ms"].get<double>();
    arm.ready_ms.push_back(before_main + json["ready_ms"].get<double>());
    arm.lookup_ms.push_back(json["lookup_ms"].get<double>());
    arm.step_ms.push_back(json["step_ms"].get<double>());
    arm.prompt_tokens = json["prompt_tokens"].get<int>();
    arm.reused_tokens = json["reused_tokens"].get<int>();
    arm.token_ids = json["token_ids"];
    return {};
  }

  const WarmStartArgs& args_;
  std::string dir_;
};

void PrintText(const OrderedJson& json) {
  std::vector<std::vector<std::string>> rows = {
      {"prompt", "arm", "first token, ms", "ready", "lookup", "reused",
       "against warm"}};
  for (const OrderedJson& length : json["lengths"]) {
    const auto median = [&length](const char* arm, const char* what) {
      return length[arm][what]["median"].get<double>();
    };
    for (const char* arm : {"cold", "warm", "hot"}) {
      const auto all =
          length[arm]["first_token_ms"]["all"].get<std::vector<double>>();
      rows.push_back({std::to_string(length["prompt_tokens"].get<int>()), arm,
                      SpreadText(all, 1), Fixed(median(arm, "ready_ms"), 1),
                      Fixed(median(arm, "lookup_ms"), 1),
                      std::to_string(length[arm]["reused_tokens"].get<int>()),
                      Fixed(median("warm", "first_token_ms") /
                                median(arm, "first_token_ms"),
                            1) +
                          "x"});
    }
    const double floor = median("hot", "ready_ms") + median("hot", "step_ms");
    Print(std::to_string(length["prompt_tokens"].get<int>()) +
          " tokens: start-up " + Fixed(median("hot", "ready_ms"), 1) +
          " ms + one decode step " + Fixed(median("hot", "step_ms"), 1) +
          " ms = " + Fixed(floor, 1) + " ms; hot took " +
          Fixed(median("hot", "first_token_ms"), 1) + " ms, " +
          Fixed(median("hot", "first_token_ms") / floor, 2) + " times that\n");
  }
  Print("\n" + FormatTable(rows));
}

int RunWarmStart(WarmStartArgs& args) {
  if (const auto ready = args.base.Finalize(); !ready.ok()) {
    return Fail(ready.error());
  }
  const fs::path parent =
      args.dir.empty() ? fs::temp_directory_path() : fs::path(args.dir);
  std::string dir = (parent / "hearth-bench-XXXXXX").string();
  if (::mkdtemp(dir.data()) == nullptr) {
    return Fail({Code::kIo, parent.string() + ": no folder can be made there"});
  }
  CatchInterrupts();
  const auto json = WarmStart(args, dir).Run();
  std::error_code ignored;
  fs::remove_all(dir, ignored);
  if (!json.ok()) {
    const int code = Fail(json.error());
    return Interrupted() ? kInterrupted : code;
  }
  if (args.base.json) {
    PrintJson(*json);
  } else {
    PrintText(*json);
  }
  return kOk;
}

}  // namespace

void AddBenchWarmStart(const Command& bench, int& exit_code) {
  auto args = std::make_shared<WarmStartArgs>();
  Command command = bench.Sub(
      "warm-start",
      "Time new processes to their first token: cold, without a prompt cache, "
      "and with the prompt in it");
  args->base.Add(command);
  command
      .Integers("--lengths", args->lengths, 2, 1 << 22,
                "prompt lengths in tokens")
      .Default("512,4096");
  command
      .Integer("--repetitions,-r", args->repetitions, 1, 1000,
               "of each arm; medians are reported")
      .Default(std::to_string(args->repetitions));
  command
      .Integer("--decode", args->n_decode, 1, 1 << 20, "tokens after the first")
      .Default(std::to_string(args->n_decode));
  command.Flag("--drop-page-cache", args->drop,
               "model and store come from the disk at each launch");
  command.Name("--dir", args->dir,
               "where the store is made; default: the temporary folder");
  command.Run(exit_code, [args] { return RunWarmStart(*args); });
  AddLaunch(bench, exit_code);
}

}  // namespace hearth::cli
