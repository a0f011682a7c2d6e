#include "engine/measure/run_chunks.h"

#include <algorithm>
#include <vector>

#include "engine/session/history.h"

namespace hearth {
namespace {

// Rows of logits in a step: few enough for a large vocabulary's memory.
constexpr int kLogitRowsMax = 256;

// The chunks of one group, which go through the model side by side.
class Group {
 public:
  Group(const KvPlan& kv, StepRunner& steps, const TextChunks& chunks,
        const ChunkRun& run, int first, int n)
      : steps_(steps), run_(run) {
    const auto width = static_cast<std::size_t>(chunks.context_tokens);
    for (int i = 0; i < n; ++i) {
      histories_.emplace_back(kv.NewSequence());
      tokens_.push_back(
          std::span(chunks.tokens)
              .subspan(static_cast<std::size_t>(first + i) * width, width));
    }
  }

  int n_done() const { return n_done_ * static_cast<int>(histories_.size()); }
  bool done() const { return n_done_ == run_.n_tokens; }

  // As many tokens as a step has room for, all with logits or all without.
  Result<void> Step() {
    const bool wants = n_done_ >= run_.first_logits;
    const int room = (wants ? kLogitRowsMax : Forward::kStepTokensMax) /
                     static_cast<int>(histories_.size());
    const int end = wants ? run_.n_tokens : run_.first_logits;
    const int n = std::min(std::max(room, 1), end - n_done_);
    std::vector<StepItem> items;
    for (std::size_t i = 0; i < histories_.size(); ++i) {
      items.push_back({&histories_[i],
                       tokens_[i].subspan(static_cast<std::size_t>(n_done_),
                                          static_cast<std::size_t>(n)),
                       wants ? LogitRows::kAll : LogitRows::kNone});
    }
    HEARTH_TRY(steps_.Run(items));
    if (wants && run_.on_logits != nullptr) {
      std::vector<ChunkLogits> all;
      for (std::size_t i = 0; i < histories_.size(); ++i) {
        all.push_back({n_done_, n, tokens_[i], histories_[i].AllLogits()});
      }
      run_.on_logits(all);
    }
    n_done_ += n;
    return {};
  }

 private:
  StepRunner& steps_;
  const ChunkRun& run_;
  std::vector<History> histories_;
  std::vector<std::span<const std::int32_t>> tokens_;
  int n_done_ = 0;  // of each chunk
};

}  // namespace

Result<void> RunChunks(const KvPlan& kv, StepRunner& steps,
                       const TextChunks& chunks, const ChunkRun& run) {
  const int n_side =
      std::max(1, Forward::kStepTokensMax / chunks.context_tokens);
  const std::int64_t total = std::int64_t{chunks.n_chunks} * run.n_tokens;
  for (int first = 0; first < chunks.n_chunks; first += n_side) {
    Group group(kv, steps, chunks, run, first,
                std::min(n_side, chunks.n_chunks - first));
    const std::int64_t before = std::int64_t{first} * run.n_tokens;
    while (!group.done()) {
      HEARTH_TRY(group.Step());
      if (run.progress != nullptr &&
          !run.progress(before + group.n_done(), total)) {
        return {Code::kCancelled, "stopped"};
      }
    }
  }
  return {};
}

}  // namespace hearth
