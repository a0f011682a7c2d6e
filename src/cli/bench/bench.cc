// hearth bench: tokens per second of prefill and decode; the other
// measurements are its subcommands.
#include "cli/bench/bench.h"

#include <algorithm>
#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/progress.h"
#include "cli/terminal/units.h"
#include "hearth/engine.h"

namespace hearth::cli {
namespace {

struct SpeedArgs {
  BenchArgs base;
  int n_prefill = 512;
  int n_decode = 128;
  int depth = 0;
  int repetitions = 5;
  std::vector<int> sequences;  // not empty: decoded together
};

struct Speeds {
  double load_ms = 0;                   // Engine::Open
  double depth_ms = 0;                  // computing the first `depth` tokens
  std::vector<double> prefill, decode;  // tokens a second
};

bool Continue(int, int) { return !Interrupted(); }

// The session holds at least the first `depth` of `tokens`; brings it to all.
Result<double> TimePrefill(Session& session,
                           std::span<const std::int32_t> tokens, int depth) {
  HEARTH_TRY(session.Rewind(depth));
  HEARTH_ASSIGN(const SyncReport report, session.Sync(tokens, Continue));
  return report.prefill_ms;
}

// Milliseconds of n steps that follow `tokens`.
Result<double> TimeDecode(Session& session,
                          std::span<const std::int32_t> tokens, int n) {
  HEARTH_TRY(session.Rewind(static_cast<int>(tokens.size())));
  HEARTH_TRY(session.Sync(tokens, Continue));
  // The first token comes from the prompt's logits: n steps give n more.
  GenerateOptions options{.n_tokens_max = n + 1, .ignore_eos = true};
  options.sampling.temperature = 0;
  HEARTH_ASSIGN(
      const GenerateReport report,
      session.Generate(options, [](const Token&) { return !Interrupted(); }));
  if (report.stop != StopReason::kLength) {
    return {Code::kCancelled, "interrupted"};
  }
  return report.decode_ms;
}

Result<Speeds> Measure(const SpeedArgs& args, Engine& engine) {
  Speeds speeds;
  const auto n_runs = static_cast<std::uint64_t>(
      args.repetitions *
      ((args.n_prefill > 0 ? 1 : 0) + (args.n_decode > 0 ? 1 : 0)));
  Progress progress("bench", Unit::kRuns, args.base.quiet);
  const auto update = [&] {
    progress.Update(speeds.prefill.size() + speeds.decode.size(), n_runs);
  };
  HEARTH_ASSIGN(const std::unique_ptr<Session> session, engine.NewSession());
  const auto tokens =
      RandomTokens(args.depth + args.n_prefill + 1, engine.info().vocab_size);
  const auto first = [&tokens](int n) {
    return std::span<const std::int32_t>(tokens).first(
        static_cast<std::size_t>(n));
  };
  if (args.depth > 0) {
    HEARTH_ASSIGN(speeds.depth_ms, TimePrefill(*session, first(args.depth), 0));
  }
  if (args.n_prefill > 0) {
    const int n_warm = std::min(args.n_prefill, 256);
    HEARTH_TRY(TimePrefill(*session, first(args.depth + n_warm), args.depth));
  }
  for (int r = 0; args.n_prefill > 0 && r < args.repetitions; ++r) {
    HEARTH_ASSIGN(
        const double ms,
        TimePrefill(*session, first(args.depth + args.n_prefill), args.depth));
    speeds.prefill.push_back(1000.0 * args.n_prefill / ms);
    update();
  }
  if (args.n_decode == 0) return speeds;
  // A model cannot go on from nothing.
  const auto prompt = first(std::max(1, args.depth));
  HEARTH_TRY(session->Rewind(0 < args.depth ? args.depth : 0));
  HEARTH_TRY(session->Sync(prompt, Continue));
  HEARTH_TRY(TimeDecode(*session, prompt, 1));
  for (int r = 0; r < args.repetitions; ++r) {
    HEARTH_ASSIGN(const double ms, TimeDecode(*session, prompt, args.n_decode));
    speeds.decode.push_back(1000.0 * args.n_decode / ms);
    update();
  }
  return speeds;
}

OrderedJson ToJson(const SpeedArgs& args, const Engine& engine,
                   const Speeds& speeds) {
  const EngineOptions& options = args.base.engine;
  const int n_threads =
      options.n_threads > 0 ? options.n_threads : AvailableCpus();
  OrderedJson json;
  json["model"] = options.model_path;
  json["name"] = engine.info().name;
  json["weight_bytes"] = engine.info().weight_bytes;
  json["kv"] = args.base.kv;
  json["threads"] = n_threads;
  json["threads_prefill"] =
      options.n_threads_prefill > 0 ? options.n_threads_prefill : n_threads;
  json["batch"] = options.prefill_step_tokens;
  json["depth"] = args.depth;
  json["load_ms"] = speeds.load_ms;
  json["depth_prefill_ms"] = speeds.depth_ms;
  json["prefill_tokens"] = args.n_prefill;
  json["prefill_tokens_per_s"] = Spread(speeds.prefill);
  json["decode_tokens"] = args.n_decode;
  json["decode_tokens_per_s"] = Spread(speeds.decode);
  json["peak_rss_bytes"] = StatusBytes("VmHWM");
  json["anonymous_rss_bytes"] = StatusBytes("RssAnon");
  return json;
}

std::string AsText(const SpeedArgs& args, const Engine& engine,
                   const Speeds& speeds) {
  std::string text = "model    " + Escaped(engine.info().name) + ", " +
                     HumanBytes(engine.info().weight_bytes) + " of weights, " +
                     args.base.kv + " KV\nload     " + HumanMs(speeds.load_ms) +
                     "\n";
  const std::string depth =
      args.depth > 0 ? " at depth " + std::to_string(args.depth) : "";
  if (!speeds.prefill.empty()) {
    text += "prefill  " + SpreadText(speeds.prefill, 1) + " tokens/s, " +
            std::to_string(args.n_prefill) + " tokens" + depth + "\n";
  }
  if (!speeds.decode.empty()) {
    text += "decode   " + SpreadText(speeds.decode, 2) + " tokens/s, " +
            std::to_string(args.n_decode) + " tokens" + depth + "\n";
  }
  return text + "memory   " + HumanBytes(StatusBytes("VmHWM")) + " at most, " +
         HumanBytes(StatusBytes("RssAnon")) + " of it not mapped from files\n";
}

int Bench(SpeedArgs& args) {
  if (const auto ready = args.base.Finalize(); !ready.ok()) {
    return Fail(ready.error());
  }
  if (!args.sequences.empty()) {
    return BenchBatch({.base = args.base,
                       .sequences = args.sequences,
                       .depths = args.depth > 0 ? std::vector<int>{args.depth}
                                                : std::vector<int>{0, 4096},
                       .n_decode = std::max(1, args.n_decode),
                       .repetitions = args.repetitions});
  }
  args.base.engine.context_tokens =
      args.depth + std::max(args.n_prefill, args.n_decode + 1) + 1;
  const double before = SinceStartMs();
  auto engine = Engine::Open(args.base.engine);
  if (!engine.ok()) return Fail(engine.error());
  const double load_ms = SinceStartMs() - before;
  CatchInterrupts();
  auto speeds = Measure(args, **engine);
  if (!speeds.ok()) {
    const int code = Fail(speeds.error());
    return Interrupted() ? kInterrupted : code;
  }
  speeds->load_ms = load_ms;
  if (args.base.json) {
    PrintJson(ToJson(args, **engine, *speeds));
  } else {
    Print(AsText(args, **engine, *speeds));
  }
  return kOk;
}

}  // namespace

void AddBench(const Command& program, int& exit_code) {
  auto args = std::make_shared<SpeedArgs>();
  Command command = program.Sub(
      "bench", "Measure speed, start, memory and store on this machine");
  command.NeedsSub(0);
  args->base.Add(command);
  command
      .Integer("--prefill", args->n_prefill, 0, 1 << 20,
               "tokens of a prompt to compute; 0: leave out")
      .Default(std::to_string(args->n_prefill));
  command
      .Integer("--decode", args->n_decode, 0, 1 << 20,
               "tokens to generate one by one; 0: leave out")
      .Default(std::to_string(args->n_decode));
  command
      .Integer("--depth", args->depth, 0, 1 << 22,
               "tokens that are in the cache before either")
      .Default("0");
  command.Integer("--batch", args->base.engine.prefill_step_tokens, 1, 512,
                  "prompt tokens that are computed together, 1 to 512; "
                  "default: as in normal use");
  command.Integers("--batch-sequences", args->sequences, 1, 512,
                   "decode so many conversations in common steps, with fp16 "
                   "and int8 KV, at 0 and 4,096 tokens each (or --depth): "
                   "tokens/s of all together");
  command
      .Integer("--repetitions,-r", args->repetitions, 1, 1000,
               "of each figure; medians are reported")
      .Default(std::to_string(args->repetitions));
  command.Run(exit_code, [args, command, &exit_code] {
    return command.HasSub() ? exit_code : Bench(*args);
  });
  AddBenchWarmStart(command, exit_code);
  AddBenchMemory(command, exit_code);
  AddBenchStore(command, exit_code);
}

}  // namespace hearth::cli
