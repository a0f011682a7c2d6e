#include "cache/states/sequence_states.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/check.h"
#include "kernels/kernels.h"

namespace hearth {
namespace {

float* At(float* slab, std::size_t offset) {
  return slab + offset / sizeof(float);
}
const float* At(const float* slab, std::size_t offset) {
  return slab + offset / sizeof(float);
}

// The last inputs behind `n_rows` more of them.
void ReplayInputs(const StateShape& shape, const float* before,
                  const float* journal, int n_rows, float* after) {
  const std::int64_t n = shape.dims[0], width = shape.dims[1];
  for (std::int64_t t = 0; t < n; ++t) {
    const std::int64_t from = n_rows + t;
    std::copy_n(from < n ? before + from * width : journal + (from - n) * width,
                width, after + t * width);
  }
}

void ReplayDeltaNet(const StateShape& shape, const float* before,
                    const float* journal, int n_rows, float* after) {
  const int key_dim = shape.dims[1], value_dim = shape.dims[2];
  const std::int64_t matrix = std::int64_t{key_dim} * value_dim;
  const std::int64_t stride = shape.journal_floats();
  std::vector<float> unused(static_cast<std::size_t>(value_dim));
  for (int h = 0; h < shape.dims[0]; ++h) {
    const float* k = journal + std::int64_t{h} * (key_dim + value_dim + 2);
    const float* v = k + key_dim;
    ActiveKernels().delta_update(before + h * matrix, after + h * matrix,
                                 key_dim, value_dim,
                                 {.n = n_rows,
                                  .q = k,
                                  .k = k,
                                  .qk_stride = stride,
                                  .v = v,
                                  .v_stride = stride,
                                  .decay = v + value_dim,
                                  .rate = v + value_dim + 1,
                                  .gate_stride = stride,
                                  .out = unused.data(),
                                  .out_stride = 0});
  }
}

void ReplayMamba2(const StateShape& shape, const float* before,
                  const float* journal, int n_rows, float* after) {
  const int n_state = shape.dims[1], head_dim = shape.dims[2];
  const std::int64_t matrix = std::int64_t{n_state} * head_dim;
  const std::int64_t stride = shape.journal_floats();
  std::vector<float> unused(static_cast<std::size_t>(head_dim));
  for (int h = 0; h < shape.dims[0]; ++h) {
    const float* write = journal + std::int64_t{h} * (n_state + head_dim + 1);
    const float* x = write + n_state;
    ActiveKernels().ssm_update(before + h * matrix, after + h * matrix, n_state,
                               head_dim,
                               {.n = n_rows,
                                .x = x,
                                .x_stride = stride,
                                .write = write,
                                .read = write,
                                .state_stride = stride,
                                .decay = x + head_dim,
                                .decay_stride = stride,
                                .out = unused.data(),
                                .out_stride = 0});
  }
}

}  // namespace

SequenceStates::SequenceStates(const KvSpec& spec,
                               std::shared_ptr<BlockPool> pool)
    : shapes_(spec.states), layout_(shapes_), pool_(std::move(pool)) {}

// What is kept is given up for a step, the oldest position first.
Result<std::shared_ptr<StateSlab>> SequenceStates::NewSlab(
    BlockPromise& promise) {
  if (spare_ != nullptr) return std::exchange(spare_, nullptr);
  while (true) {
    auto slab = StateSlab::New(layout_, pool_, promise);
    if (slab.ok() || kept_.empty()) return slab;
    kept_.erase(kept_.begin());
  }
}

std::size_t SequenceStates::JournalFloats(int n_rows) const {
  std::size_t n = 0;
  for (const StateShape& shape : shapes_) {
    n += static_cast<std::size_t>(shape.journal_floats());
  }
  return n * static_cast<std::size_t>(n_rows);
}

Result<void> SequenceStates::Begin(int n_tokens, int n_new,
                                   BlockPromise& promise) {
  if (empty()) return {};
  HEARTH_CHECK(n_tokens == n_tokens_);
  if (live_ == nullptr) {
    HEARTH_ASSIGN(const std::shared_ptr<StateSlab> zeros, NewSlab(promise));
    std::memset(zeros->writable(), 0, layout_.bytes());
    live_ = zeros;
  }
  // What the step before started from is not needed once this one is there;
  // unless somebody else holds it, this one is written over it.
  if (CanWriteOver(before_) && spare_ == nullptr) {
    spare_ =
        std::const_pointer_cast<StateSlab>(std::exchange(before_, nullptr));
  }
  before_ = nullptr;
  n_journal_ = 0;
  HEARTH_ASSIGN(std::shared_ptr<StateSlab> next, NewSlab(promise));
  if (n_new > 1 && n_new <= kJournalTokens) {
    HEARTH_ASSIGN(spare_, NewSlab(promise));
    n_journal_ = n_new;
    journal_.resize(JournalFloats(n_new));
  }
  next_ = std::move(next);
  n_new_ = n_new;
  return {};
}

void SequenceStates::Commit() {
  if (empty()) return;
  before_ = std::move(live_);
  n_before_ = n_tokens_;
  live_ = std::move(next_);
  n_tokens_ += std::exchange(n_new_, 0);
}

void SequenceStates::Abandon() {
  if (next_ != nullptr) spare_ = std::exchange(next_, nullptr);
  n_new_ = n_journal_ = 0;
}

const float* SequenceStates::Read(int state) const {
  return At(live_->data(), layout_.offset(state));
}

float* SequenceStates::Write(int state) {
  return At(next_->writable(), layout_.offset(state));
}

// One state's rows one behind the other.
float* SequenceStates::Journal(int state) {
  if (n_journal_ == 0) return nullptr;
  std::size_t at = 0;
  for (int i = 0; i < state; ++i) {
    at += static_cast<std::size_t>(
        shapes_[static_cast<std::size_t>(i)].journal_floats());
  }
  return journal_.data() + at * static_cast<std::size_t>(n_journal_);
}

void SequenceStates::Restore(int n_tokens, StateCheckpointPtr here) {
  HEARTH_CHECK(here != nullptr && here->n_tokens == n_tokens &&
               here->slab->bytes() == layout_.bytes());
  before_ = nullptr;
  n_journal_ = 0;
  next_ = nullptr;
  n_new_ = 0;
  n_tokens_ = n_tokens;
  live_ = here->slab;
  kept_ = {std::move(here)};
}

StateCheckpointPtr SequenceStates::Keep(
    const std::function<StateTail()>& tail) {
  if (empty() || n_tokens_ == 0) return nullptr;
  if (!kept_.empty() && kept_.back()->n_tokens == n_tokens_) {
    return kept_.back();
  }
  auto here = std::make_shared<const StateCheckpoint>(
      StateCheckpoint{n_tokens_, live_, tail()});
  kept_.push_back(here);
  if (kept_.size() <= kKeptMax) return here;
  // The older half at half the density: powers of two back from the end. The
  // first stays: what conversations begin with.
  for (std::size_t i = kept_.size() / 2; i > 0;
       i -= std::min<std::size_t>(2, i)) {
    kept_.erase(kept_.begin() + static_cast<std::ptrdiff_t>(i) - 1);
  }
  return here;
}

int SequenceStates::RewindableTo(int n_tokens) const {
  if (empty() || n_tokens == n_tokens_) return n_tokens;
  if (before_ != nullptr && n_tokens >= n_before_) {
    return n_journal_ > 0 ? n_tokens : n_before_;
  }
  int found = 0;
  for (const StateCheckpointPtr& kept : kept_) {
    if (kept->n_tokens <= n_tokens) found = kept->n_tokens;
  }
  return found;
}

// Through the journal's first rows, from what the step started from.
void SequenceStates::Replay(int n_rows, StateSlab& to) const {
  const float* journal = journal_.data();
  for (std::size_t i = 0; i < shapes_.size(); ++i) {
    const StateShape& shape = shapes_[i];
    const std::size_t offset = layout_.offset(static_cast<int>(i));
    const float* from = At(before_->data(), offset);
    float* after = At(to.writable(), offset);
    switch (shape.rule) {
      case StateRule::kLastInputs:
        ReplayInputs(shape, from, journal, n_rows, after);
        break;
      case StateRule::kDeltaNet:
        ReplayDeltaNet(shape, from, journal, n_rows, after);
        break;
      case StateRule::kMamba2:
        ReplayMamba2(shape, from, journal, n_rows, after);
        break;
    }
    journal += shape.journal_floats() * n_journal_;
  }
}

void SequenceStates::Rewind(int n_tokens) {
  if (empty() || n_tokens == n_tokens_) return;
  HEARTH_CHECK(RewindableTo(n_tokens) == n_tokens);
  if (before_ != nullptr && n_tokens > n_before_) {
    std::shared_ptr<StateSlab> cut = std::exchange(spare_, nullptr);
    Replay(n_tokens - n_before_, *cut);
    live_ = std::move(cut);
  } else if (before_ != nullptr && n_tokens == n_before_) {
    live_ = before_;
  } else {
    std::shared_ptr<const StateSlab> found;  // none: zeros
    for (const StateCheckpointPtr& kept : kept_) {
      if (kept->n_tokens == n_tokens) found = kept->slab;
    }
    live_ = found;
  }
  n_tokens_ = n_tokens;
  before_ = nullptr;
  n_journal_ = 0;
  std::erase_if(kept_, [n_tokens](const StateCheckpointPtr& kept) {
    return kept->n_tokens > n_tokens;
  });
}

SequenceStates SequenceStates::Fork() const {
  SequenceStates fork = *this;
  fork.before_ = nullptr;
  fork.n_journal_ = 0;
  fork.journal_.clear();
  fork.next_ = fork.spare_ = nullptr;
  return fork;
}

std::vector<const StateSlab*> SequenceStates::Slabs() const {
  std::vector<const StateSlab*> slabs = {live_.get(), before_.get(),
                                         next_.get(), spare_.get()};
  for (const StateCheckpointPtr& kept : kept_) {
    slabs.push_back(kept->slab.get());
  }
  std::sort(slabs.begin(), slabs.end());
  slabs.erase(std::unique(slabs.begin(), slabs.end()), slabs.end());
  std::erase(slabs, nullptr);
  return slabs;
}

std::uint64_t SequenceStates::held_bytes() const {
  std::uint64_t n = journal_.capacity() * sizeof(float);
  for (const StateSlab* slab : Slabs()) n += slab->bytes();
  return n;
}

std::uint64_t SequenceStates::own_bytes() const {
  std::uint64_t n = 0;
  for (const StateSlab* slab : Slabs()) {
    if (slab->mapped()) continue;
    long n_all = 0, n_here = 0;
    const auto count = [&](const auto& pointer, long n_more) {
      if (pointer.get() != slab) return;
      n_all = pointer.use_count();
      n_here += n_more;
    };
    count(live_, 1);
    count(before_, 1);
    count(next_, 1);
    count(spare_, 1);
    for (const StateCheckpointPtr& kept : kept_) {
      count(kept->slab, kept.use_count() == 1 ? 1 : 0);
    }
    if (n_here == n_all) n += slab->bytes();
  }
  return n;
}

std::uint64_t SequenceStates::wanted_bytes() const {
  if (empty()) return 0;
  // Where the step leaves them, room to replay a journal to, and zeros to begin
  // with.
  int n = live_ == nullptr ? 3 : 2;
  n -= spare_ != nullptr ? 1 : 0;
  n -= CanWriteOver(before_) ? 1 : 0;
  return static_cast<std::uint64_t>(std::max(0, n)) * layout_.bytes();
}

}  // namespace hearth
