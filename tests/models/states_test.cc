// What a model with recurrent states computes is the same however a sequence
// came to where it is: cut into steps, forked, cut back. Bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "cache/states/sequence_states.h"
#include "model/state_port.h"
#include "testing/family_fixture.h"

namespace hearth {
namespace {

class States : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string dir = DirectoryOf(GetParam());
    if (dir.empty()) GTEST_SKIP() << "no such fixture here";
    model_ = Load(dir, Rounding::kExact);
    ids_ = ReadReference(dir).ids;
    pool_ = std::make_unique<ThreadPool>(2);
    forward_ = std::make_unique<Forward>(model_, MakeCpuOps(model_, *pool_));
    spec_ = SpecOf(model_.config, KvFormat::kF32, KvFormat::kF32, 16);
    kv_pool_ = *MakeKvPool(spec_, RetentionOf(model_.config), {.n_blocks = 64});
    want_ = Logits(model_, ids_, 512, 1);
  }

  std::unique_ptr<KvSequence> New() const {
    return MakeInPlaceSequence(kv_pool_, spec_, RetentionOf(model_.config));
  }
  std::size_t vocab() const {
    return static_cast<std::size_t>(model_.config.vocab_size);
  }
  Result<void> Append(KvSequence& kv, std::span<const std::int32_t> ids,
                      std::vector<float>& logits) {
    logits.resize(ids.size() * vocab());
    return forward_->Step({.kv = &kv,
                           .tokens = ids,
                           .want = LogitRows::kAll,
                           .logits = logits.data()});
  }
  // Appends the reference's tokens up to `end`; every logit must be its own.
  void Follow(KvSequence& kv, int end, int step) {
    while (kv.n_tokens() < end) {
      const int at = kv.n_tokens();
      const int n = std::min(step, end - at);
      std::vector<float> got;
      const auto done =
          Append(kv,
                 std::span(ids_).subspan(static_cast<std::size_t>(at),
                                         static_cast<std::size_t>(n)),
                 got);
      ASSERT_TRUE(done.ok()) << done.error().message;
      ASSERT_TRUE(std::equal(
          got.begin(), got.end(),
          want_.begin() + static_cast<std::ptrdiff_t>(
                              static_cast<std::size_t>(at) * vocab())))
          << "tokens " << at << " to " << at + n;
    }
  }
  // Appends what is not the reference's.
  void Stray(KvSequence& kv, int n) {
    const std::vector<std::int32_t> ids(static_cast<std::size_t>(n), 3);
    std::vector<float> ignored;
    ASSERT_TRUE(Append(kv, ids, ignored).ok());
  }

  LoadedModel model_;
  std::vector<std::int32_t> ids_;
  std::unique_ptr<ThreadPool> pool_;
  std::unique_ptr<Forward> forward_;
  KvSpec spec_;
  std::shared_ptr<BlockPool> kv_pool_;
  std::vector<float> want_;
};

TEST_P(States, AForkGoesItsOwnWay) {
  const auto kv = New();
  Follow(*kv, 50, 17);
  auto fork = kv->Fork();
  ASSERT_TRUE(fork.ok());
  Stray(**fork, 20);
  Follow(*kv, 160, 40);
}

TEST_P(States, AShortStepIsCutBackToAnyOfItsTokens) {
  for (int kept = 0; kept <= 6; ++kept) {
    const auto kv = New();
    Follow(*kv, 40, 23);
    // Right up to `kept`, then guesses that were wrong.
    std::vector<std::int32_t> guesses(ids_.begin() + 40, ids_.begin() + 46);
    for (std::size_t i = static_cast<std::size_t>(kept); i < 6; ++i) {
      guesses[i] = 5;
    }
    std::vector<float> ignored;
    ASSERT_TRUE(Append(*kv, guesses, ignored).ok());
    ASSERT_EQ(kv->RewindableTo(40 + kept), 40 + kept);
    kv->Rewind(40 + kept);
    Follow(*kv, 160, 31);
  }
}

TEST_P(States, AKeptPositionIsReturnedTo) {
  const auto kv = New();
  Follow(*kv, 60, 60);
  kv->KeepState();
  Follow(*kv, 130, 35);
  EXPECT_EQ(kv->RewindableTo(129), 95) << "where the last step began";
  EXPECT_EQ(kv->RewindableTo(90), 60);
  EXPECT_EQ(kv->RewindableTo(59), 0);
  kv->Rewind(60);
  Stray(*kv, 40);
  kv->Rewind(60);
  Follow(*kv, 160, 33);
  kv->Rewind(0);
  Follow(*kv, 160, 64);
}

TEST_P(States, AStepThatFailsChangesNone) {
  const auto kv = New();
  Follow(*kv, 40, 40);
  ASSERT_TRUE(kv->Extend(8).ok());
  StatePort* states = kv->states();
  ASSERT_NE(states, nullptr);
  for (std::size_t i = 0; i < spec_.states.size(); ++i) {
    float* to = states->Write(static_cast<int>(i));
    std::fill_n(to, spec_.states[i].n_floats(), 1e9f);
  }
  kv->Abandon();
  Follow(*kv, 160, 50);
}

TEST_P(States, OfEveryPositionThatIsKeptOneStaysNearTheEnd) {
  const auto kv = New();
  for (int at = 8; at <= 160; at += 8) {
    Follow(*kv, at, 8);
    kv->KeepState();
  }
  Stray(*kv, 40);
  int n = 0;
  for (int at = kv->RewindableTo(159); at > 0; at = kv->RewindableTo(at - 1)) {
    EXPECT_EQ(at % 8, 0);
    ++n;
  }
  EXPECT_GE(n, 3);
  EXPECT_LE(n, static_cast<int>(SequenceStates::kKeptMax));
  EXPECT_EQ(kv->RewindableTo(159), 152);
}

// Number i of a head's matrix, in the reference's order.
std::size_t PlaceOf(const StateShape& shape, std::size_t i) {
  if (shape.rule != StateRule::kMamba2) return i;
  // There [head_dim][n_state].
  const auto n_state = static_cast<std::size_t>(shape.dims[1]);
  const auto head_dim = static_cast<std::size_t>(shape.dims[2]);
  const std::size_t matrix = n_state * head_dim, at = i % matrix;
  return i - at + at % n_state * head_dim + at / n_state;
}

TEST_P(States, AreTheReferences) {
  const std::string dir = DirectoryOf(GetParam());
  auto file = SafetensorsFile::Open(dir + "/states.safetensors");
  if (!file.ok()) GTEST_SKIP() << "the reference has none";
  constexpr double kTolerance = 2e-4;
  const auto kv = New();
  Follow(*kv, 160, 160);
  ASSERT_TRUE(kv->Extend(1).ok());
  int n_layers = 0;
  for (const LayerPlan& layer : PlanLayers(model_)) {
    if (model_.config.StatesOf(layer.index).size() < 2) continue;
    ++n_layers;
    const StateShape shape = model_.config.StatesOf(layer.index)[0];
    const std::string name = "layer" + std::to_string(layer.index) + ".";
    const auto matrices =
        Values<float>(*file, (name + "recurrent_states.0").c_str());
    const float* ours = kv->states()->Read(layer.first_state);
    for (std::size_t i = 0; i < matrices.size(); ++i) {
      ASSERT_NEAR(ours[PlaceOf(shape, i)], matrices[i], kTolerance)
          << name << i;
    }
    // By channel, and one input more than is needed.
    const auto inputs = Values<float>(*file, (name + "conv_states.0").c_str());
    const float* last = kv->states()->Read(layer.first_state + 1);
    const std::size_t taps = 4, n = inputs.size() / taps;
    for (std::size_t i = 0; i < inputs.size(); ++i) {
      if (i % taps == 0) continue;
      ASSERT_NEAR(last[(i % taps - 1) * n + i / taps], inputs[i], kTolerance);
    }
  }
  EXPECT_GT(n_layers, 0);
  kv->Abandon();
}

INSTANTIATE_TEST_SUITE_P(
    All, States,
    ::testing::Values("lfm2", "qwen3_5_long", "qwen3_5_moe", "qwen3_next",
                      "nemotron_h", "granitemoehybrid", "falcon_h1"),
    [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace hearth
