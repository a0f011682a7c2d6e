#include "engine/session/step_runner.h"

#include <algorithm>
#include <new>
#include <utility>
#include <vector>

namespace hearth {
namespace {

// Several tokens of which not all logits are wanted are a prompt; a token and
// guesses behind it want all.
bool HasPrompt(std::span<const StepItem> items) {
  return std::any_of(items.begin(), items.end(), [](const StepItem& item) {
    return item.tokens.size() > 1 && item.want != LogitRows::kAll;
  });
}

void MakeRoom(std::vector<std::int32_t>& tokens, std::size_t n_more) {
  const std::size_t n = tokens.size() + n_more;
  if (n > tokens.capacity()) tokens.reserve(std::max(n, 2 * tokens.size()));
}

int RowsOf(const StepItem& item) {
  switch (item.want) {
    case LogitRows::kNone:
      return 0;
    case LogitRows::kLast:
      return 1;
    case LogitRows::kAll:
      break;
  }
  return static_cast<int>(item.tokens.size());
}

}  // namespace

StepRunner::StepRunner(const LoadedModel& model,
                       std::shared_ptr<Workers> workers,
                       std::unique_ptr<Ops> ops)
    : n_vocab_(static_cast<std::size_t>(model.config.vocab_size)),
      d_model_(static_cast<std::size_t>(model.config.d_model)),
      workers_(std::move(workers)),
      forward_(model, std::move(ops)),
      numerics_(forward_.numerics()) {}

Result<void> StepRunner::Run(std::span<const StepItem> items) {
  if (items.empty()) return {};
  try {
    return RunAll(items);
  } catch (const std::bad_alloc&) {
    for (const StepItem& item : items) item.history->kv().Abandon();
    return {Code::kResourceFull,
            "the machine has no memory left to compute with; use a shorter "
            "context or a smaller model, or end other programs"};
  }
}

// Throws std::bad_alloc, and then no history is changed.
Result<void> StepRunner::RunAll(std::span<const StepItem> items) {
  std::vector<StepPart> parts;
  for (const StepItem& item : items) {
    History& history = *item.history;
    const auto n_rows = static_cast<std::size_t>(RowsOf(item));
    // Before the step, so that nothing behind it can fail.
    MakeRoom(history.tokens_, item.tokens.size());
    history.next_logits_.resize(n_rows * n_vocab_);
    history.next_hidden_.resize(keeps_hidden_ ? n_rows * d_model_ : 0);
    parts.push_back(
        {.kv = history.kv_.get(),
         .tokens = item.tokens,
         .want = item.want,
         .logits = history.next_logits_.data(),
         .hidden = keeps_hidden_ ? history.next_hidden_.data() : nullptr});
  }
  {
    const MutexLock turn(workers_->turn);
    workers_->pool.UseThreads(HasPrompt(items) ? workers_->n_for_prompts
                                               : workers_->n_for_tokens);
    HEARTH_TRY(forward_.Step(parts));
  }
  for (const StepItem& item : items) Keep(item);
  return {};
}

void StepRunner::Keep(const StepItem& item) const {
  History& history = *item.history;
  history.tokens_.insert(history.tokens_.end(), item.tokens.begin(),
                         item.tokens.end());
  history.n_logits_ = RowsOf(item);
  if (history.n_logits_ == 0) return;
  std::swap(history.logits_, history.next_logits_);
  std::swap(history.hidden_, history.next_hidden_);
}

}  // namespace hearth
