// hearth bench memory: how the KV cache grows, in each way of growing. Each
// way runs in a process of its own, because a peak belongs to a process.
#include <memory>
#include <string>

#include "cli/bench/bench.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/units.h"
#include "hearth/engine.h"

namespace hearth::cli {
namespace {

constexpr const char* kWays[] = {"concat", "in-place", "preallocated"};

struct MemoryArgs {
  BenchArgs base;
  std::vector<int> lengths = {256, 512, 1024, 2048};
  std::string way;  // of the child; empty: the parent
};

Result<OrderedJson> Grow(MemoryArgs& args) {
  EngineOptions& engine_options = args.base.engine;
  if (args.way == "concat") engine_options.kv_growth = KvGrowth::kConcat;
  engine_options.kv_preallocate = args.way == "preallocated";
  engine_options.context_tokens = args.lengths.back();
  HEARTH_ASSIGN(const std::unique_ptr<Engine> engine,
                Engine::Open(engine_options));
  HEARTH_ASSIGN(const std::unique_ptr<Session> session, engine->NewSession());
  const auto tokens =
      RandomTokens(args.lengths.back(), engine->info().vocab_size);
  OrderedJson rows = OrderedJson::array();
  for (const int n : args.lengths) {
    const auto prompt = std::span<const std::int32_t>(tokens).first(
        static_cast<std::size_t>(n));
    HEARTH_TRY(session->Sync(prompt, [](int, int) { return !Interrupted(); }));
    const KvReport kv = session->Usage();
    rows.push_back({{"way", args.way},
                    {"tokens", n},
                    {"kv_logical_bytes", kv.logical_bytes},
                    {"kv_physical_bytes", kv.physical_bytes},
                    {"anonymous_rss_bytes", StatusBytes("RssAnon")},
                    {"peak_rss_bytes", StatusBytes("VmHWM")}});
  }
  return rows;
}

Result<OrderedJson> GrowInChild(const MemoryArgs& args, const char* way) {
  std::vector<std::string> words = {"bench", "memory", "--way", way,
                                    "--lengths"};
  std::string lengths;
  for (const int n : args.lengths) {
    lengths += (lengths.empty() ? "" : ",") + std::to_string(n);
  }
  words.push_back(lengths);
  for (std::string& word : args.base.Words()) words.push_back(word);
  HEARTH_ASSIGN(const ChildRun run, RunSelf(words));
  HEARTH_ASSIGN(const Json rows, ParseJson(run.last_line, "a child process"));
  return OrderedJson(rows);
}

void PrintText(const OrderedJson& json) {
  std::vector<std::vector<std::string>> rows = {{"growth", "tokens",
                                                 "KV logical", "KV physical",
                                                 "anonymous", "peak RSS"}};
  for (const OrderedJson& row : json["rows"]) {
    const auto bytes = [&row](const char* key) {
      return HumanBytes(row[key].get<std::uint64_t>());
    };
    rows.push_back({row["way"].get<std::string>(),
                    std::to_string(row["tokens"].get<int>()),
                    bytes("kv_logical_bytes"), bytes("kv_physical_bytes"),
                    bytes("anonymous_rss_bytes"), bytes("peak_rss_bytes")});
  }
  Print(FormatTable(rows));
}

Result<OrderedJson> RunAll(const MemoryArgs& args) {
  OrderedJson json;
  json["model"] = args.base.engine.model_path;
  json["kv"] = args.base.kv;
  json["rows"] = OrderedJson::array();
  for (const char* way : kWays) {
    HEARTH_ASSIGN(const OrderedJson rows, GrowInChild(args, way));
    for (const OrderedJson& row : rows) json["rows"].push_back(row);
  }
  return json;
}

int RunMemory(MemoryArgs& args) {
  if (const auto ready = args.base.Finalize(); !ready.ok()) {
    return Fail(ready.error());
  }
  std::sort(args.lengths.begin(), args.lengths.end());
  const bool child = !args.way.empty();
  const auto json = child ? Grow(args) : RunAll(args);
  if (!json.ok()) return Fail(json.error());
  if (child || args.base.json) {
    PrintJson(*json);
  } else {
    PrintText(*json);
  }
  return kOk;
}

}  // namespace

void AddBenchMemory(const Command& bench, int& exit_code) {
  auto args = std::make_shared<MemoryArgs>();
  Command command = bench.Sub(
      "memory",
      "Show what the KV cache takes as it grows: by concatenation, in place, "
      "and allocated beforehand");
  args->base.Add(command);
  command
      .Integers("--lengths", args->lengths, 1, 1 << 22,
                "at which tokens to look")
      .Default("256,512,1024,2048");
  command.Take(
      "--way",
      [args](const std::string& way) -> Result<void> {
        args->way = way;
        for (const char* known : kWays) {
          if (way == known) return {};
        }
        return {Code::kInvalidArgument,
                "must be concat, in-place or preallocated"};
      },
      "only this one, as JSON: concat, in-place or preallocated");
  command.Run(exit_code, [args] { return RunMemory(*args); });
}

}  // namespace hearth::cli
