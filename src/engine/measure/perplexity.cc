#include "hearth/perplexity.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/engine_core.h"
#include "engine/measure/chunks.h"
#include "engine/measure/run_chunks.h"

namespace hearth {
namespace {

// -ln of the probability that a row of logits gives `token`.
double Surprise(std::span<const float> logits, std::int32_t token) {
  const float largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float x : logits) sum += double{std::exp(x - largest)};
  return std::log(sum) -
         double{logits[static_cast<std::size_t>(token)] - largest};
}

// The tokens' surprises, added up in the order of the text's chunks.
class Surprises {
 public:
  explicit Surprises(EngineCore& core)
      : workers_(*core.workers),
        n_vocab_(static_cast<std::size_t>(core.model.config.vocab_size)) {}

  void Add(std::span<const ChunkLogits> chunks) {
    for (const ChunkLogits& chunk : chunks) {
      values_.resize(static_cast<std::size_t>(chunk.n_rows));
      const MutexLock turn(workers_.turn);
      workers_.pool.ParallelFor(chunk.n_rows, [&](std::int64_t r, int) {
        const auto row = static_cast<std::size_t>(r);
        const auto next = static_cast<std::size_t>(chunk.first_token) + row + 1;
        values_[row] = Surprise(chunk.logits.subspan(row * n_vocab_, n_vocab_),
                                chunk.chunk[next]);
      });
      for (const double value : values_) {
        sum_ += value;
        squares_ += value * value;
        ++n_;
      }
    }
  }

  void Report(PerplexityReport& report) const {
    const auto n = static_cast<double>(n_);
    report.n_counted_tokens = n_;
    report.nats = sum_ / n;
    report.perplexity = std::exp(report.nats);
    const double variance = squares_ / n - report.nats * report.nats;
    report.nats_error =
        n_ > 1 && variance > 0 ? std::sqrt(variance / (n - 1)) : 0;
    report.perplexity_error = report.nats_error * report.perplexity;
  }

 private:
  Workers& workers_;
  const std::size_t n_vocab_;
  std::vector<double> values_;  // of one chunk's step
  double sum_ = 0, squares_ = 0;
  std::int64_t n_ = 0;
};

}  // namespace

Result<PerplexityReport> MeasurePerplexity(Engine& engine,
                                           std::string_view text,
                                           const PerplexityOptions& options) {
  EngineCore& core = EngineAccess::Core(engine);
  HEARTH_ASSIGN(const TextChunks chunks,
                CutIntoChunks(*core.tokenizer, text, options.context_tokens,
                              options.n_chunks_max, core.kv.context_tokens()));
  PerplexityReport report;
  report.context_tokens = chunks.context_tokens;
  report.n_chunks = chunks.n_chunks;
  report.n_text_tokens = chunks.n_text_tokens;
  report.begins_with_bos = chunks.begins_with_bos;
  // Nothing of the chunk is predicted from its last token.
  const int n_tokens = chunks.context_tokens - 1;
  report.n_computed_tokens = std::int64_t{chunks.n_chunks} * n_tokens;
  Surprises surprises(core);
  HEARTH_TRY(RunChunks(
      core.kv, *core.steps, chunks,
      {.n_tokens = n_tokens,
       .first_logits = chunks.context_tokens / 2,
       .on_logits =
           [&](std::span<const ChunkLogits> logits) { surprises.Add(logits); },
       .progress = options.progress}));
  surprises.Report(report);
  return report;
}

}  // namespace hearth
