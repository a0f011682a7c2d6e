// hearth bench --batch-sequences: conversations that decode together, one
// forward step for all. What it cannot be faster than comes first: the weights
// are read once a step, keys and values once for each sequence.
#include <algorithm>
#include <memory>
#include <string>

#include "base/stopwatch.h"
#include "base/thread_pool.h"
#include "cli/bench/bench.h"
#include "cli/terminal/interrupt.h"
#include "cli/terminal/text.h"
#include "cli/terminal/units.h"
#include "hearth/engine.h"

namespace hearth::cli {
namespace {

using Sessions = std::vector<std::unique_ptr<Session>>;

bool Continue(int, int) { return !Interrupted(); }

// Bytes a second that the threads read together, from as much memory as the
// weights take (so from a cache, where they would be in one): the best of a few
// passes.
double ReadBandwidth(int n_threads, std::uint64_t weight_bytes) {
  constexpr std::size_t kPiece = std::size_t{1} << 20;
  const std::size_t n_pieces =
      std::clamp<std::size_t>(weight_bytes / kPiece, 4, 1024);
  const std::vector<std::uint64_t> memory(n_pieces * (kPiece / 8), 1);
  ThreadPool pool(n_threads);
  std::vector<std::uint64_t> sums(n_pieces);
  double best = 0;
  for (int pass = 0; pass < 4; ++pass) {
    const Stopwatch watch;
    pool.ParallelFor(
        static_cast<std::int64_t>(n_pieces), [&](std::int64_t i, int) {
          const std::uint64_t* words =
              memory.data() + static_cast<std::size_t>(i) * (kPiece / 8);
          // Several sums, so that reading and not adding takes the time.
          std::uint64_t sum[8] = {};
          for (std::size_t w = 0; w < kPiece / 8; w += 8) {
            for (std::size_t k = 0; k < 8; ++k) sum[k] += words[w + k];
          }
          for (const std::uint64_t s : sum)
            sums[static_cast<std::size_t>(i)] += s;
        });
    best = std::max(
        best, static_cast<double>(n_pieces * kPiece) / (1e-3 * watch.ms()));
  }
  return sums[0] == 0 ? 0 : best;
}

// Different random prompts, so that no two share a block.
std::vector<std::int32_t> PromptOf(int sequence, int n_tokens, int n_vocab) {
  auto tokens = RandomTokens(n_tokens + sequence, n_vocab);
  tokens.erase(tokens.begin(), tokens.begin() + sequence);
  return tokens;
}

// Tokens a second of `n_decode` steps of all sessions together.
Result<double> TimeTogether(Engine& engine, std::span<Session* const> sessions,
                            int n_decode) {
  GenerateOptions options{.n_tokens_max = n_decode + 1, .ignore_eos = true};
  options.sampling.temperature = 0;
  std::vector<std::unique_ptr<Generation>> answers;
  for (Session* session : sessions) {
    HEARTH_ASSIGN(auto answer, session->Begin(options, nullptr, nullptr));
    answers.push_back(std::move(answer));
  }
  std::vector<SessionStep> steps(sessions.size());
  const Stopwatch watch;
  for (int i = 0; i <= n_decode; ++i) {
    for (std::size_t s = 0; s < sessions.size(); ++s) {
      HEARTH_ASSIGN(const auto next, answers[s]->Next());
      steps[s] = {sessions[s], next, StepLogits::kAll};
    }
    if (i == n_decode) break;
    if (Interrupted()) return {Code::kCancelled, "interrupted"};
    HEARTH_TRY(engine.Step(steps));
  }
  return 1000.0 * n_decode * static_cast<double>(sessions.size()) / watch.ms();
}

// The same through Generate, one session alone.
Result<double> TimeAlone(Session& session, int n_decode) {
  GenerateOptions options{.n_tokens_max = n_decode + 1, .ignore_eos = true};
  options.sampling.temperature = 0;
  HEARTH_ASSIGN(
      const GenerateReport report,
      session.Generate(options, [](const Token&) { return !Interrupted(); }));
  if (report.stop != StopReason::kLength) {
    return {Code::kCancelled, "interrupted"};
  }
  return 1000.0 * n_decode / report.decode_ms;
}

struct Setting {
  const BatchBenchArgs& args;
  std::string kv;
  int depth;
  double bandwidth;  // bytes a second
};

// Brings the first n sessions to their prompts' ends.
Result<void> Prepare(const Setting& setting, Engine& engine, Sessions& sessions,
                     int n) {
  const int n_prompt = std::max(1, setting.depth);
  for (int s = 0; s < n; ++s) {
    if (static_cast<std::size_t>(s) == sessions.size()) {
      HEARTH_ASSIGN(auto session, engine.NewSession());
      sessions.push_back(std::move(session));
    }
    HEARTH_TRY(sessions[static_cast<std::size_t>(s)]->Sync(
        PromptOf(s, n_prompt, engine.info().vocab_size), Continue));
  }
  return {};
}

Result<OrderedJson> MeasureRow(const Setting& setting, Engine& engine,
                               Sessions& sessions, int n, double alone) {
  std::vector<double> together;
  for (int r = 0; r < setting.args.repetitions; ++r) {
    HEARTH_TRY(Prepare(setting, engine, sessions, n));
    std::vector<Session*> taking_part;
    for (int s = 0; s < n; ++s) {
      taking_part.push_back(sessions[static_cast<std::size_t>(s)].get());
    }
    HEARTH_ASSIGN(const double speed,
                  TimeTogether(engine, taking_part, setting.args.n_decode));
    together.push_back(speed);
  }
  std::uint64_t kv_bytes = 0;
  for (int s = 0; s < n; ++s) {
    kv_bytes += sessions[static_cast<std::size_t>(s)]->Usage().logical_bytes;
  }
  const double floor_s =
      static_cast<double>(engine.info().weight_bytes + kv_bytes) /
      setting.bandwidth;
  return OrderedJson{{"kv", setting.kv},
                     {"depth", setting.depth},
                     {"sequences", n},
                     {"tokens_per_s", Spread(together)},
                     {"times_alone", Median(together) / alone},
                     {"floor_tokens_per_s", n / floor_s}};
}

// `alone_empty`: tokens a second of one with an empty cache, which the rows are
// compared with; measured when it is 0.
Result<void> MeasureSetting(const Setting& setting, double& alone_empty,
                            OrderedJson& rows) {
  EngineOptions options = setting.args.base.engine;
  options.kv_storage = *KvStorageNamed(setting.kv);
  options.context_tokens =
      std::max(1, setting.depth) + setting.args.n_decode + 1;
  HEARTH_ASSIGN(const std::unique_ptr<Engine> engine, Engine::Open(options));
  Sessions sessions;
  if (alone_empty == 0) {
    std::vector<double> alone;
    for (int r = 0; r <= setting.args.repetitions; ++r) {
      HEARTH_TRY(Prepare(setting, *engine, sessions, 1));
      HEARTH_ASSIGN(const double speed,
                    TimeAlone(*sessions[0], setting.args.n_decode));
      if (r > 0) alone.push_back(speed);  // the first one maps the weights in
    }
    alone_empty = Median(alone);
  }
  for (const int n : setting.args.sequences) {
    HEARTH_ASSIGN(OrderedJson row,
                  MeasureRow(setting, *engine, sessions, n, alone_empty));
    rows.push_back(std::move(row));
  }
  return {};
}

Result<OrderedJson> Measure(const BatchBenchArgs& args) {
  const EngineOptions& options = args.base.engine;
  HEARTH_ASSIGN(const ModelInfo info, InspectModel(options.model_path));
  const int n_threads =
      options.n_threads > 0 ? options.n_threads : AvailableCpus();
  const double bandwidth = ReadBandwidth(n_threads, info.weight_bytes);
  OrderedJson json;
  json["model"] = options.model_path;
  json["name"] = info.name;
  json["threads"] = n_threads;
  json["decode_tokens"] = args.n_decode;
  json["weight_bytes"] = info.weight_bytes;
  json["read_bytes_per_s"] = bandwidth;
  json["floor_step_ms"] =
      1000.0 * static_cast<double>(info.weight_bytes) / bandwidth;
  if (!args.base.json) {
    PrintNow("model    " + info.name + ", " + HumanBytes(info.weight_bytes) +
             " of weights\nfloor    a step reads the weights once: " +
             HumanMs(json["floor_step_ms"].get<double>()) + " at " +
             HumanBytes(static_cast<std::uint64_t>(bandwidth)) + "/s\n");
  }
  json["rows"] = OrderedJson::array();
  for (const char* kv : {"fp16", "int8"}) {
    double alone_empty = 0;
    for (const int depth : args.depths) {
      HEARTH_TRY(MeasureSetting({args, kv, depth, bandwidth}, alone_empty,
                                json["rows"]));
    }
    json["alone_tokens_per_s"][kv] = alone_empty;
  }
  return json;
}

void PrintText(const OrderedJson& json) {
  std::vector<std::vector<std::string>> table = {
      {"kv", "tokens", "sequences", "tokens/s", "times alone", "floor"}};
  for (const OrderedJson& row : json["rows"]) {
    table.push_back({row["kv"].get<std::string>(),
                     std::to_string(row["depth"].get<int>()),
                     std::to_string(row["sequences"].get<int>()),
                     Fixed(row["tokens_per_s"]["median"].get<double>(), 1),
                     Fixed(row["times_alone"].get<double>(), 2),
                     Fixed(row["floor_tokens_per_s"].get<double>(), 1)});
  }
  Print(FormatTable(table));
}

}  // namespace

int BenchBatch(const BatchBenchArgs& args) {
  CatchInterrupts();
  const auto json = Measure(args);
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

}  // namespace hearth::cli
