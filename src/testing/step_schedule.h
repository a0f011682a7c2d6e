// Several sequences advanced in steps that are drawn by chance, and each of
// them alone: what tests of the batched step compare.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "cache/kv_sequence.h"
#include "engine/kv_setup.h"
#include "model/cpu/cpu_ops.h"
#include "model/forward.h"

namespace hearth {

// What a forward pass gave for every position of a sequence.
struct StepRecord {
  std::vector<float> logits;  // [n][vocab_size]
  std::vector<float> hidden;  // [n][d_model]
};

// One sequence of a schedule.
struct ScheduledSequence {
  std::vector<std::int32_t> ids;
  std::unique_ptr<KvSequence> kv;
  StepRecord want;

  int n_left() const { return static_cast<int>(ids.size()) - kv->n_tokens(); }
};

class StepSchedule {
 public:
  using MakeSequence = std::function<std::unique_ptr<KvSequence>()>;

  // All outlive the object.
  StepSchedule(const ModelConfig& config, Forward& forward, MakeSequence make,
               unsigned seed)
      : vocab_(static_cast<std::size_t>(config.vocab_size)),
        d_model_(static_cast<std::size_t>(config.d_model)),
        forward_(forward),
        make_(std::move(make)),
        rng_(seed) {}

  int Random(int low, int high) {
    return low +
           static_cast<int>(rng_() % static_cast<unsigned>(high - low + 1));
  }

  // A sequence of n random tokens, computed alone in steps of 512.
  void Add(int n) {
    ScheduledSequence s;
    for (int i = 0; i < n; ++i) {
      s.ids.push_back(Random(0, static_cast<int>(vocab_) - 1));
    }
    s.want.logits.resize(s.ids.size() * vocab_);
    s.want.hidden.resize(s.ids.size() * d_model_);
    const auto alone = make_();
    for (std::size_t at = 0; at < s.ids.size();) {
      const std::size_t k = std::min<std::size_t>(512, s.ids.size() - at);
      const auto done =
          forward_.Step({.kv = alone.get(),
                         .tokens = std::span(s.ids).subspan(at, k),
                         .want = LogitRows::kAll,
                         .logits = s.want.logits.data() + at * vocab_,
                         .hidden = s.want.hidden.data() + at * d_model_});
      ASSERT_TRUE(done.ok()) << done.error().message;
      at += k;
    }
    s.kv = make_();
    sequences_.push_back(std::move(s));
  }

  std::vector<ScheduledSequence>& sequences() { return sequences_; }
  bool IsDone() const {
    return std::all_of(sequences_.begin(), sequences_.end(),
                       [](const auto& s) { return s.n_left() == 0; });
  }

  // One step of some of the sequences, each with one token or up to step_max,
  // in any order, with any logits. `extra`: parts beside them, which make it
  // fail.
  void Step(int step_max, std::span<const StepPart> extra = {}) {
    struct Share {
      ScheduledSequence* sequence;
      int at, n;
      LogitRows want;
      StepRecord got;
    };
    std::vector<Share> shares;
    int room = 400;
    for (ScheduledSequence& s : sequences_) {
      if (s.n_left() == 0 || room == 0 || Random(0, 3) == 0) continue;
      int n = std::min({s.n_left(), room, Random(1, step_max)});
      if (Random(0, 1) == 0) n = 1;
      const auto want = static_cast<LogitRows>(Random(0, 2));
      shares.push_back({&s, s.kv->n_tokens(), n, want, {}});
      room -= n;
    }
    std::shuffle(shares.begin(), shares.end(), rng_);
    std::vector<StepPart> parts;
    for (Share& share : shares) {
      const auto rows = static_cast<std::size_t>(RowsOf(share.want, share.n));
      share.got.logits.resize(rows * vocab_);
      share.got.hidden.resize(rows * d_model_);
      const bool hidden = Random(0, 1) == 0;
      if (!hidden) share.got.hidden.clear();
      parts.push_back(
          {.kv = share.sequence->kv.get(),
           .tokens = std::span(share.sequence->ids)
                         .subspan(static_cast<std::size_t>(share.at),
                                  static_cast<std::size_t>(share.n)),
           .want = share.want,
           .logits = share.got.logits.data(),
           .hidden = hidden ? share.got.hidden.data() : nullptr});
    }
    for (const StepPart& part : extra) {
      const int where = Random(0, static_cast<int>(parts.size()));
      parts.insert(parts.begin() + where, part);
    }
    if (parts.empty()) return;
    const auto done = forward_.Step(parts);
    ASSERT_EQ(done.ok(), extra.empty());
    for (const Share& share : shares) {
      const int n_now = share.sequence->kv->n_tokens();
      ASSERT_EQ(n_now, share.at + (done.ok() ? share.n : 0));
      if (!done.ok()) continue;
      const int first = n_now - RowsOf(share.want, share.n);
      ExpectSame(share.got.logits, share.sequence->want.logits, first, vocab_);
      ExpectSame(share.got.hidden, share.sequence->want.hidden, first,
                 d_model_);
    }
  }

 private:
  static int RowsOf(LogitRows want, int n) {
    return want == LogitRows::kAll ? n : want == LogitRows::kLast ? 1 : 0;
  }
  static void ExpectSame(const std::vector<float>& got,
                         const std::vector<float>& want, int first,
                         std::size_t width) {
    if (got.empty()) return;
    const float* from = want.data() + static_cast<std::size_t>(first) * width;
    ASSERT_EQ(std::memcmp(got.data(), from, got.size() * sizeof(float)), 0)
        << "from position " << first;
  }

  std::size_t vocab_, d_model_;
  Forward& forward_;
  MakeSequence make_;
  std::mt19937 rng_;
  std::vector<ScheduledSequence> sequences_;
};

inline constexpr int kStepBlock = 16;
inline constexpr KvFormat kStepFormats[] = {KvFormat::kF32, KvFormat::kF16,
                                            KvFormat::kBF16, KvFormat::kInt8,
                                            KvFormat::kInt4};

// Has no room, wherever in a step it stands.
class FullPort final : public HostKvPort {
 public:
  explicit FullPort(const KvSequence& like) : like_(like) {}

  int n_tokens() const override { return 0; }
  int block_tokens() const override { return like_.block_tokens(); }
  bool quantises() const override { return like_.quantises(); }
  Result<void> Extend(int) override {
    return {Code::kResourceFull, "no room, as the test wants it"};
  }
  void BeginLayer(int) override { ADD_FAILURE(); }
  void Commit() override { ADD_FAILURE(); }
  void Abandon() override { ADD_FAILURE(); }
  void WriteHead(int, int, const float*, const float*, std::int64_t) override {
    ADD_FAILURE();
  }
  KvTile Tile(int, int, int) const override { return {}; }
  KvTile OwnTile(int, int, int) const override { return {}; }

 private:
  const KvSequence& like_;
};

inline StepSchedule::MakeSequence Maker(const ModelConfig& config,
                                        KvFormat format, int n_tokens) {
  const KvSpec spec = SpecOf(config, format, format, kStepBlock);
  const KvRetention retention = RetentionOf(config);
  // One pool for all, as an engine has it.
  const std::shared_ptr<BlockPool> pool =
      *MakeKvPool(spec, retention, {.n_blocks = n_tokens / kStepBlock + 4});
  return [=] { return MakeInPlaceSequence(pool, spec, retention); };
}

// Random steps until all sequences are done; every now and then one that fails.
inline void CheckSchedule(const LoadedModel& model, KvFormat format, int n_max,
                          unsigned seed) {
  SCOPED_TRACE(std::string(NameOf(format)) + " seed " + std::to_string(seed));
  ThreadPool pool(1 + static_cast<int>(seed % 3));
  Forward forward(model, MakeCpuOps(model, pool));
  StepSchedule schedule(model.config, forward,
                        Maker(model.config, format, n_max), seed);
  for (int n = schedule.Random(2, 5); n > 0; --n) {
    schedule.Add(schedule.Random(n_max / 3, n_max));
    if (::testing::Test::HasFatalFailure()) return;
  }
  FullPort full(*schedule.sequences()[0].kv);
  const std::int32_t token = 0;
  const StepPart refused{.kv = &full, .tokens = std::span(&token, 1)};
  while (!schedule.IsDone()) {
    if (schedule.Random(0, 4) == 0) {
      schedule.Step(n_max / 3, std::span(&refused, 1));
    }
    schedule.Step(n_max / 3);
    if (::testing::Test::HasFatalFailure()) return;
  }
}

}  // namespace hearth
