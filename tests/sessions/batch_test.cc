// Several sequences in one step: alone = in any batch = in any cut, bit for
// bit; and a step that fails changes none of them.
#include <gtest/gtest.h>

#include <limits>
#include <string>
#include <vector>

#include "cache/kv_sequence.h"
#include "model/cpu/cpu_ops.h"
#include "model/forward.h"
#include "testing/reference_model.h"
#include "testing/step_schedule.h"

namespace hearth {
namespace {

// --- Windows, sinks, shared keys and values ---------------------------------

struct Sight {
  const char* name;
  int window;
  int sink_tokens, stream_window;
  bool yoco;
};

class BatchSights : public ::testing::TestWithParam<Sight> {};

TEST_P(BatchSights, AloneIsInAnyBatchIsInAnyCut) {
  const Sight& sight = GetParam();
  ReferenceModel reference(ReferenceShape{});
  ModelConfig& config = reference.model.config;
  if (sight.yoco) reference.ShareKv(1);
  if (sight.window > 0) {
    config.layer_kinds.assign(4, LayerKind{.window = sight.window});
    config.layer_kinds[1].window = 0;
  }
  config.sink_tokens = sight.sink_tokens;
  config.stream_window = sight.stream_window;
  unsigned seed = 0;
  for (const KvFormat format : kStepFormats) {
    CheckSchedule(reference.model, format, 130, seed++);
  }
}

INSTANTIATE_TEST_SUITE_P(All, BatchSights,
                         ::testing::Values(Sight{"full", 0, 0, 0, false},
                                           Sight{"window", 20, 0, 0, false},
                                           Sight{"sinks", 0, 3, 40, false},
                                           Sight{"yoco", 0, 0, 0, true},
                                           Sight{"window_yoco", 20, 0, 0, true},
                                           Sight{"sinks_yoco", 0, 3, 40, true}),
                         [](const auto& sight) {
                           return std::string(sight.param.name);
                         });

// Behind one segment of attention, where a few rows' work is cut by segments
// and many sequences' work is handed out at once.
TEST(Batch, LongContextsAreCutInSegmentsWithoutChangingABit) {
  const ReferenceModel reference(ReferenceShape{});
  CheckSchedule(reference.model, KvFormat::kF16, 1300, 2);
}

// --- Steps that fail --------------------------------------------------------

// Beside its room being full, a sequence must stand as before in memory.
TEST(Batch, AStepThatFailsGivesBackWhatItTook) {
  const ReferenceModel reference(ReferenceShape{});
  for (const KvFormat format : kStepFormats) {
    SCOPED_TRACE(NameOf(format));
    ThreadPool pool(1);
    Forward forward(reference.model, MakeCpuOps(reference.model, pool));
    const auto make = Maker(reference.model.config, format, 200);
    const auto a = make(), b = make();
    const std::vector<std::int32_t> ids(100, 3);
    ASSERT_TRUE(
        forward.Step({.kv = a.get(), .tokens = std::span(ids).first(20)}).ok());
    const auto before = a->Usage();
    FullPort full(*a);
    const StepPart parts[] = {{.kv = a.get(), .tokens = ids},
                              {.kv = b.get(), .tokens = ids},
                              {.kv = &full, .tokens = ids}};
    const auto failed = forward.Step(parts);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, Code::kResourceFull);
    EXPECT_EQ(a->n_tokens(), 20);
    EXPECT_EQ(b->n_tokens(), 0);
    EXPECT_EQ(a->Usage().physical_bytes, before.physical_bytes);
    EXPECT_EQ(a->Usage().logical_bytes, before.logical_bytes);
    EXPECT_EQ(b->Usage().physical_bytes, 0u);
  }
}

TEST(Batch, ATokenOutsideTheVocabularyOfOnePartFailsTheStepBeforeAnyWork) {
  const ReferenceModel reference(ReferenceShape{});
  ThreadPool pool(1);
  Forward forward(reference.model, MakeCpuOps(reference.model, pool));
  const auto make = Maker(reference.model.config, KvFormat::kF32, 100);
  const auto a = make(), b = make();
  const std::int32_t good = 1, bad = reference.model.config.vocab_size;
  const StepPart parts[] = {{.kv = a.get(), .tokens = std::span(&good, 1)},
                            {.kv = b.get(), .tokens = std::span(&bad, 1)}};
  const auto failed = forward.Step(parts);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Code::kInvalidArgument);
  EXPECT_EQ(a->n_tokens(), 0);
  EXPECT_EQ(b->n_tokens(), 0);
}

// --- Numbers that are none --------------------------------------------------

// Weights are read-only for everybody else.
void Poison(const WeightMatrix& w, float with) {
  reinterpret_cast<float*>(const_cast<std::byte*>(w.data))[5] = with;
}

void ExpectRefused(const LoadedModel& model, const std::string& names) {
  ThreadPool pool(2);
  Forward forward(model, MakeCpuOps(model, pool));
  const auto make = Maker(model.config, KvFormat::kF16, 100);
  const std::vector<std::int32_t> ids = {1, 2, 3};
  std::vector<float> logits(static_cast<std::size_t>(model.config.vocab_size));
  for (const LogitRows want : {LogitRows::kNone, LogitRows::kLast}) {
    const auto a = make(), b = make();
    const StepPart parts[] = {
        {.kv = a.get(), .tokens = ids, .want = want, .logits = logits.data()},
        {.kv = b.get(), .tokens = ids}};
    const auto done = forward.Step(parts);
    if (done.ok()) {
      // Nobody asked for logits, and only these are wrong.
      EXPECT_EQ(want, LogitRows::kNone);
      EXPECT_NE(names.find("head"), std::string::npos);
      continue;
    }
    EXPECT_EQ(done.error().code, Code::kCorrupt);
    EXPECT_NE(done.error().message.find(names), std::string::npos)
        << done.error().message;
    EXPECT_EQ(a->n_tokens(), 0);
    EXPECT_EQ(b->n_tokens(), 0);
    EXPECT_EQ(a->Usage().physical_bytes, 0u);
  }
}

TEST(NonFinite, AWeightIsNamedAndNothingIsKept) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const float infinity = std::numeric_limits<float>::infinity();
  for (const float value : {nan, infinity, -infinity}) {
    ReferenceModel down(ReferenceShape{});
    Poison(down.model.weights.layers[2].mlp.down.w, value);
    ExpectRefused(down.model, "the down weights (layer 2)");

    ReferenceModel key(ReferenceShape{});
    Poison(key.model.weights.layers[0].k.w, nan);
    ExpectRefused(key.model, "the key weights (layer 0)");

    ReferenceModel norm(ReferenceShape{});
    norm.model.weights.layers[3].attention_norm.weight[7] = value;
    ExpectRefused(norm.model, "the norm before attention (layer 3)");

    ReferenceModel head(ReferenceShape{});
    head.model.weights.head.bias.assign(
        static_cast<std::size_t>(head.model.config.vocab_size), 0.0f);
    head.model.weights.head.bias[9] = value;
    ExpectRefused(head.model, "the output head (the logits)");
  }
}

TEST(NonFinite, NumbersThatGrowTooLargeNameTheLayer) {
  ReferenceModel reference(ReferenceShape{});
  for (float& w : reference.model.weights.layers[1].mlp_norm.weight) w = 1e30f;
  ExpectRefused(reference.model, "layer 1 gave numbers that are NaN");
}

}  // namespace
}  // namespace hearth
