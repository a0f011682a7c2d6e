// Models on a device, against the CPU, bit for bit: on the host
// (testing/host_device.h), and on an NVIDIA card where there is one and the
// build has kernels for it (-DHEARTH_CUDA=ON); else these tests are skipped and
// say why.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include "cuda/driver_device.h"
#include "testing/block_model.h"
#include "testing/device_pair.h"
#include "testing/family_fixture.h"
#include "testing/host_device.h"
#include "testing/reference_model.h"

namespace hearth {
namespace {

constexpr int kBlock = 16;

enum class On { kHost, kCard };

class DeviceTest : public ::testing::TestWithParam<On> {
 protected:
  void SetUp() override {
    if (GetParam() == On::kHost) {
      device_ = std::make_shared<gpu::HostDevice>();
      return;
    }
    auto card = gpu::OpenCard();
    if (!card.ok()) GTEST_SKIP() << card.error().message;
    device_ = std::move(*card);
  }
  // The host takes a thousand times as long.
  bool OnCard() const { return GetParam() == On::kCard; }
  std::shared_ptr<gpu::Device> device_;
};

INSTANTIATE_TEST_SUITE_P(All, DeviceTest,
                         ::testing::Values(On::kHost, On::kCard),
                         [](const auto& on) {
                           return std::string(on.param == On::kHost ? "host"
                                                                    : "card");
                         });

TEST_P(DeviceTest, EveryWeightFormatGivesTheCpusBits) {
  for (int type = 0; type <= static_cast<int>(DType::kMXFP4); ++type) {
    const auto dtype = static_cast<DType>(type);
    if (dtype == DType::kTgInt4) continue;  // whole models have it, below
    SCOPED_TRACE(InfoOf(dtype).name);
    const BlockModel made(
        dtype, DType::kQ6_K,
        {.n_layers = OnCard() ? 2 : 1, .d_mlp = OnCard() ? 512 : 256});
    CheckDevice(made.model, device_,
                {.n_prompt = OnCard() ? 150 : (type % 5 == 3 ? 9 : 3),
                 .all = OnCard()});
    if (HasFatalFailure()) return;
  }
}

struct Formats {
  KvFormat keys, values;
};
constexpr Formats kFormats[] = {
    {KvFormat::kF32, KvFormat::kF32},   {KvFormat::kF16, KvFormat::kF16},
    {KvFormat::kBF16, KvFormat::kBF16}, {KvFormat::kInt8, KvFormat::kInt8},
    {KvFormat::kInt4, KvFormat::kInt4}, {KvFormat::kInt8, KvFormat::kInt4},
    {KvFormat::kInt4, KvFormat::kF16},  {KvFormat::kF16, KvFormat::kInt8}};

struct Look {
  const char* name;
  int window, sink_tokens, stream_window;
  bool yoco;
};

constexpr Look kLooks[] = {{"full", 0, 0, 0, false},
                           {"window", 20, 0, 0, false},
                           {"sinks", 0, 3, 40, false},
                           {"yoco", 0, 0, 0, true},
                           {"sinks_yoco", 0, 3, 40, true}};

TEST_P(DeviceTest, EveryKvFormatAndSightGivesTheCpusBits) {
  unsigned seed = 0;
  for (const Look& look : kLooks) {
    SCOPED_TRACE(look.name);
    ReferenceModel reference({.n_layers = OnCard() ? 4 : 2});
    ModelConfig& config = reference.model.config;
    if (look.yoco) reference.ShareKv(OnCard() ? 1 : 0);
    if (look.window > 0) {
      config.layer_kinds.assign(static_cast<std::size_t>(config.n_layers),
                                LayerKind{.window = look.window});
      config.layer_kinds[1].window = 0;
    }
    config.sink_tokens = look.sink_tokens;
    config.stream_window = look.stream_window;
    for (const Formats& formats : kFormats) {
      // On the host every format and every look, but not each with each.
      if (!OnCard() && (seed++) % 7 != 0) continue;
      CheckDevice(reference.model, device_,
                  {.keys = formats.keys,
                   .values = formats.values,
                   .n_prompt = OnCard() ? 75 : 45,
                   .seed = seed});
      if (HasFatalFailure()) return;
    }
  }
}

TEST_P(DeviceTest, SegmentsAreMergedInTheCpusOrder) {
  const ReferenceModel reference(
      {.n_layers = 1, .n_heads = 2, .n_kv_heads = 1, .head_dim = 4});
  for (const KvFormat format : {KvFormat::kInt8, KvFormat::kF16}) {
    DevicePair pair(reference.model, device_, format, format, 64, 3);
    auto a = pair.New();
    const int n_prompts = OnCard() ? 4 : 2;
    for (int i = 0; i < n_prompts; ++i) pair.Step({{&a, 270}});
    pair.Step({{&a, 1}});
    pair.Step({{&a, 9}});
    if (HasFatalFailure() || !OnCard()) return;
  }
}

// What does not fit goes to the host's memory and comes back.
TEST_P(DeviceTest, BlocksThatAreNotLookedAtMakeRoomForOthers) {
  const ReferenceModel reference({.n_layers = 1});
  const KvSpec spec =
      SpecOf(reference.model.config, KvFormat::kF16, KvFormat::kF16, kBlock);
  const std::uint64_t block = KvLayout(spec, kBlock).block_bytes();
  DevicePair pair(reference.model, device_, KvFormat::kF16, KvFormat::kF16,
                  kBlock, 5, 8 * block);
  auto a = pair.New(), b = pair.New();
  for (int i = 0; i < 4; ++i) {
    pair.Step({{&a, 17}});
    if (HasFatalFailure()) return;
    pair.Step({{&b, 17}});
    if (HasFatalFailure()) return;
  }
  ThreadPool pool(1);
  auto ops = MakeCudaOps(reference.model, pool, device_, 2 * block);
  ASSERT_TRUE(ops.ok());
  Forward forward(reference.model, std::move(*ops));
  auto kv_pool = MakeKvPool(spec, {}, {.n_blocks = 8});
  const auto c = MakeInPlaceSequence(*kv_pool, spec);
  const std::vector<std::int32_t> ids(100, 3);
  const auto refused = forward.Step({.kv = c.get(), .tokens = ids});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Code::kResourceFull);
  EXPECT_EQ(c->n_tokens(), 0);
}

// Every family in the repository that runs on a card.
TEST_P(DeviceTest, FamiliesGiveTheCpusBits) {
  int n = 0;
  for (const char* where : {"/models/hf/", "/models/made/"}) {
    for (const auto& entry :
         std::filesystem::directory_iterator(kTestData + where)) {
      SCOPED_TRACE(entry.path().filename().string());
      const LoadedModel model = Load(entry.path().string(), Rounding::kExact);
      if (!CheckDeviceRuns(model).ok()) continue;
      ++n;
      CheckDevice(model, device_,
                  {.n_prompt = OnCard() ? 20 : 2, .all = OnCard()});
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(n, 5);
}

}  // namespace
}  // namespace hearth
